"""A server made with the SDK, for protocol 2026-07-28: `stdio`, or `http [PORT]`, which prints its port.

With `TOKEN` in its environment the HTTP server requires it as a bearer token.
"""

import os
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("modern", version="3.2.1", instructions="A modern server for tests", log_level="ERROR")


@server.tool()
def multiply(a: int, b: int) -> int:
    """Multiplies two whole numbers."""
    return a * b


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Adds a tool of the name it is given."""
    server.add_tool(lambda: name, name=name, description="Was added while the server ran")
    await ctx.notify_tools_changed()
    return name


@server.tool()
def quit_now() -> str:
    """Ends the server without an answer."""
    os._exit(7)


@server.tool()
def deploy(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Wants an argument in a header, too."""
    return region


@server.tool()
def refuse() -> str:
    """Is refused by the server itself."""
    raise MCPError(INVALID_PARAMS, "not with me")


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello {name}"


class Guarded:
    """Requires the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = scope["type"] != "http" or Request(scope).headers.get("authorization") == f"Bearer {self.token}"
        refusal: Response = JSONResponse({"error": "who are you?"}, status_code=401)
        await (self.app if allowed else refusal)(scope, receive, send)


def serve_http(port: int) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    app: ASGIApp = server.streamable_http_app()
    if token := os.environ.get("TOKEN"):
        app = Guarded(app, token)
    uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on")).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        serve_http(int((sys.argv[2:3] or ["0"])[0]))
