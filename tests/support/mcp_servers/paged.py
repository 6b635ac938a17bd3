"""Lists that come in pages: `whole` ends, `circle` leads back to its start, `broken` fails on its third page."""

import sys

from tests.support.mcp_servers.raw import Params, Refusal, greeting, serve, tool

PAGE = 10
TOOLS = [tool(f"tool_{number:02}") for number in range(35)]


def page(params: Params) -> object:
    start, mode = int(params.get("cursor", 0)), sys.argv[1]
    if mode == "broken" and start >= 2 * PAGE:
        raise Refusal(-32603, "the third page is lost")
    after = start + PAGE
    if mode == "circle":
        after %= 2 * PAGE
    more = {"nextCursor": str(after)} if after < len(TOOLS) else {}
    return {"tools": TOOLS[start : start + PAGE], **more}


if __name__ == "__main__":
    serve({**greeting("paged", "tools"), "tools/list": page})
