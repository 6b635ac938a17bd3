"""A process with servers that would outlive it. It prints their process ids and waits to be killed."""

import asyncio
import json
import sys

from tests.unit.core.mcp_client.builders import QUICK, faulty, text, until_ready
from toolscript.core.mcp_client.servers import McpServers

NAMES = ("stubborn", "leaves_a_child")


async def main() -> None:
    servers = McpServers(QUICK)
    servers.use([faulty(name) for name in NAMES])
    await until_ready(servers, *NAMES)
    pids = [json.loads(text(await servers.call(name, "pids", {}))) for name in NAMES]
    sys.stdout.write(json.dumps([*pids[0], *pids[1]]) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
