"""Writes a line into a file for each start and each call, so that a test can count what was done.

`python -m tests.support.mcp_servers.counting FILE [NAME]`: its tool notes its `id`, waits as many `seconds` as it
is told, and notes the id once more.
"""

import json
import os
import sys
import time
from pathlib import Path

from tests.support.mcp_servers.raw import Params, greeting, said, serve, tool

FILE, NAME = Path(sys.argv[1]), (sys.argv[2:3] or ["note"])[0]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "seconds": {"type": "number"}}}


def note(event: str, call: str = "") -> None:
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"event": event, "id": call, "pid": os.getpid()}) + "\n")


def call(params: Params) -> object:
    value = params.get("arguments") or {}
    note("call", str(value.get("id", "")))
    time.sleep(float(value.get("seconds", 0)))
    note("done", str(value.get("id", "")))
    return said(json.dumps({"pid": os.getpid(), "id": value.get("id"), "env": dict(os.environ)}))


if __name__ == "__main__":
    note("start")
    described = tool(NAME, "Notes that something was done, in a file", inputSchema=SCHEMA)
    serve({**greeting("counting", "tools"), "tools/list": lambda _: {"tools": [described]}, "tools/call": call})
