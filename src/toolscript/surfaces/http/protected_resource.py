"""What a client is told about tokens for `/mcp`: RFC 9728, as the authorization of MCP asks for it.

The same at the root as for the path: the protocol has clients look there when they find nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolscript.model.tenancy import Scope
from toolscript.surfaces.http.templated_route import TemplatedRoute

MCP_PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
HOUR_SECONDS = 3600


@dataclass(frozen=True)
class ProtectedResource:
    """`public_url` empty: the address is the one that was asked. An issuer that is no address is not named."""

    public_url: str
    issuer: str
    scopes: Sequence[Scope]

    def metadata_url(self, request: Request) -> str:
        return f"{self._address(request)}{WELL_KNOWN}{MCP_PATH}"

    def routes(self) -> tuple[BaseRoute, ...]:
        return tuple(
            TemplatedRoute(path, self._answer, methods=["GET"]) for path in (WELL_KNOWN, f"{WELL_KNOWN}{MCP_PATH}")
        )

    async def _answer(self, request: Request) -> Response:
        # An address that somebody else made up must not be kept for others.
        kept = f"max-age={HOUR_SECONDS}" if self.public_url else "no-store"
        return JSONResponse(self._metadata(request), headers={"Cache-Control": kept})

    def _metadata(self, request: Request) -> dict[str, object]:
        servers = (
            {"authorization_servers": [self.issuer]} if self.issuer.startswith(("https://", "http://")) else {}
        )
        return {
            "resource": f"{self._address(request)}{MCP_PATH}",
            **servers,
            "scopes_supported": [str(scope) for scope in self.scopes],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolscript",
        }

    def _address(self, request: Request) -> str:
        return (self.public_url or str(request.base_url)).rstrip("/")
