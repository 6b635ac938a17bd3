"""An MCP server that wants tokens of an authorization server, for itself: `ISSUER [PORT]`; it prints its port.

`SCOPE` in its environment is a scope that every token needs, `RESOURCE` what its metadata say in place of itself.
"""

import os
import socket
import sys
import time

import httpx
import uvicorn
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import AnyHttpUrl


class Verifier(TokenVerifier):
    """Checks signature, issuer and expiry. The SDK checks that the token is for this server, and its scopes."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys = KeySet.import_key_set(httpx.get(f"{issuer}/jwks", trust_env=False).json())

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = jwt.decode(token, self._keys).claims
        except (JoseError, ValueError):
            return None
        if claims["iss"] != self._issuer or claims["exp"] < time.time():
            return None
        scopes = str(claims.get("scope", "")).split()
        return AccessToken(token=token, client_id=claims["client_id"], scopes=scopes, resource=claims["aud"])


def serve(issuer: str, port: int) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    itself = f"http://127.0.0.1:{port}/mcp"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(os.environ.get("RESOURCE", itself)),
        required_scopes=[os.environ.get("SCOPE", "tools:read")],
        validate_token_resource=True,
    )
    server = MCPServer("protected", log_level="ERROR", auth=settings, token_verifier=Verifier(issuer))

    @server.tool()
    def secret_of_life() -> str:
        """Tells the secret of life to people who have signed in."""
        return "42"

    @server.tool()
    def refuse_with_your_token() -> str:
        """Refuses, and repeats the token."""
        token = get_access_token()
        raise MCPError(INVALID_PARAMS, f"I know {token and token.token}")

    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on")).run(
        sockets=[listening]
    )


if __name__ == "__main__":
    serve(sys.argv[1], int((sys.argv[2:3] or ["0"])[0]))
