"""Serves the tools of a JSON-lines file; a call answers with its own arguments.

`python -m tests.support.mcp_servers.catalog FILE [SERVER]`: lines with `server`, `name`, `description`,
`input_schema` and perhaps `output_schema`, and of these, when SERVER is given, only those of that server. SIGHUP
announces that the file changed.
"""

import json
import os
import signal
import sys
from pathlib import Path

from tests.support.mcp_servers.raw import Params, greeting, notify, said, serve


def listing(_: Params) -> object:
    only = sys.argv[2:3]
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines() if line.strip()]
    return {"tools": [_tool(line) for line in lines if not only or line["server"] == only[0]]}


def _tool(line: dict[str, object]) -> dict[str, object]:
    output = {"outputSchema": line["output_schema"]} if "output_schema" in line else {}
    return {
        "name": line["name"],
        "description": line.get("description", ""),
        "inputSchema": line.get("input_schema") or {"type": "object"},
        **output,
    }


def call(params: Params) -> object:
    value = params.get("arguments") or {}
    return said(json.dumps({"pid": os.getpid(), "name": params["name"]}), structuredContent=value)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, lambda *_: notify("notifications/tools/list_changed"))
    serve({**greeting("catalog", "tools"), "tools/list": listing, "tools/call": call})
