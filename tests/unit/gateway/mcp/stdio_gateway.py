"""A gateway on stdin and stdout, with a tool that wrongly prints and logs to stdout."""

import logging
import sys

import anyio

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import run_stdio
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.mcp.tools import create_mcp_server


class Noisy(GatewayDouble):
    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        sys.stdout.write("printed\n")
        sys.stdout.flush()
        await anyio.run_process(["echo", "from a child"], stdout=None, check=True)
        logging.getLogger("test").warning("logged")
        return await super().call(tool, arguments)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level="INFO")
    anyio.run(run_stdio, create_mcp_server(Noisy(), "1.2.3"))
