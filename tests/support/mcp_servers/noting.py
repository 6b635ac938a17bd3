"""A server that notes the number of each call in the file that its argument names, and answers a moment later."""

import sys
import time
from pathlib import Path

from tests.support.mcp_servers.raw import Params, greeting, said, serve, tool

SECONDS = 0.002


def call(params: Params) -> object:
    arguments = dict(params.get("arguments") or {})
    number = arguments["number"]
    with Path(sys.argv[1]).open("a", encoding="utf-8") as notes:
        notes.write(f"{number}\n")
    time.sleep(float(arguments.get("seconds", SECONDS)))
    return said(f"noted {number}")


if __name__ == "__main__":
    serve(
        {
            **greeting("noting", "tools"),
            "tools/list": lambda _: {"tools": [tool("note", "Notes a number")]},
            "tools/call": call,
        }
    )
