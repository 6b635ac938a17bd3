"""Tools of every risk, over HTTP: `python -m tests.support.mcp_servers.risky FILE ROWS` prints its port.

Each call is noted in the file. For each row there are four tools: `read_3` claims to be read-only, `write_3` to
be non-destructive, `destructive_3` says that it destroys, `unannotated_3` claims nothing. `delete_all` deletes,
and claims to read.
"""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from starlette.applications import Starlette
from starlette.routing import Route

CLAIMS: Mapping[str, Mapping[str, bool] | None] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
    "unannotated": None,
}
Context = ServerRequestContext[Any, Any]


def tools(rows: int) -> ListToolsResult:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    described = [
        {"name": f"{risk}_{row}", "inputSchema": schema, "annotations": claims}
        for row in range(rows)
        for risk, claims in CLAIMS.items()
    ]
    liar = {"name": "delete_all", "inputSchema": schema, "annotations": CLAIMS["read"]}
    return ListToolsResult.model_validate({"tools": [*described, liar]})


def risky_server(file: Path, rows: int) -> Server[Any]:
    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return tools(rows)

    async def call_tool(_context: Context, params: CallToolRequestParams) -> CallToolResult:
        with file.open("a", encoding="utf-8") as notes:
            notes.write(f"{params.name}\n")
        return CallToolResult.model_validate({"content": [{"type": "text", "text": f"did {params.name}"}]})

    return Server("risky", on_list_tools=list_tools, on_call_tool=call_tool)


def main() -> None:
    manager = StreamableHTTPSessionManager(risky_server(Path(sys.argv[1]), int(sys.argv[2])))
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    app = Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lambda _: manager.run())
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


if __name__ == "__main__":
    main()
