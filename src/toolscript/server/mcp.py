"""MCP of the service: the tools of each capability, and the guard that authenticates every request.

A refusal is reported twice: with HTTP status and headers, and as a JSON-RPC error in the body, because some SDK
clients read the former and some the latter. The error code is the HTTP status: custom codes must be outside the
range that JSON-RPC reserves (MCP 2026-07-28, Error Codes).

A call of a tool without its scope:
- A client with a token gets status 403, `error="insufficient_scope"` and the missing scope: MCP authorization
  requires that, so that the client can request a better token.
- An anonymous client gets the same error as for a tool that does not exist. Clients do not call unlisted tools, so
  a challenge would only reach those that guess names. To require sign-in, grant the public no scopes: then the
  first request gets status 401.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from toolscript.core.errors import SetupError
from toolscript.core.mcp.lazy_mount import LazyMount
from toolscript.core.mcp.tools import ObserveMcp
from toolscript.core.settings.service import Settings, listed
from toolscript.core.version import __version__
from toolscript.core.web.auth import Identify
from toolscript.core.web.paging import TemplatedRoute
from toolscript.core.web.request_context import MAX_BYTES
from toolscript.server.app import MCP_PATH, ProtectedResource
from toolscript.server.mcp_tools import ServiceDependencies, ServiceTools

MODULES = ("toolscript.server.mcp_endpoint",)
# The SDK loads after this delay, so that it does not slow down the start; an earlier request loads it at once.
QUIET_SECONDS = 5.0
EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104
OWN = "own"

# Takes the names of all tools, and returns the observer of requests.
Observed = Callable[[Iterable[str]], ObserveMcp | None]


def unobserved(_: Iterable[str]) -> None:
    """Observe nothing."""


@asynccontextmanager
async def open_mcp(
    settings: Settings, parts: ServiceDependencies, identify: Identify, observed: Observed = unobserved
) -> AsyncIterator[tuple[BaseRoute, ...]]:
    """Open the endpoint and yield its routes: `/mcp`, and the OAuth metadata if tokens are configured."""
    tools = ServiceTools(parts)
    resource = (
        ProtectedResource(settings.public_url, settings.jwt_issuer, tools.scopes) if settings.jwt_keys else None
    )
    hosts, observe = known_hosts(settings), observed(tools.names)

    @asynccontextmanager
    async def open_apps() -> AsyncIterator[Mapping[str, ASGIApp]]:
        from toolscript.core.mcp.endpoint import LOOPBACK_HOSTS, allow_hosts, mcp_asgi
        from toolscript.server.mcp_endpoint import Guard, create_service_server

        security = allow_hosts([*LOOPBACK_HOSTS, *hosts], ("http", "https"))
        app, running = mcp_asgi(
            create_service_server(tools, __version__),
            security,
            MAX_BYTES,
            lambda inner: Guard(inner, tools, identify, security, resource, observe),
        )
        async with running:
            yield {OWN: app}

    mount = LazyMount(MODULES, open_apps, lambda: asyncio.sleep(QUIET_SECONDS))
    async with mount.open():
        yield (TemplatedRoute(MCP_PATH, mount.app(OWN)), *(resource.routes() if resource else ()))


def known_hosts(settings: Settings) -> list[str]:
    """Return the host names that requests may use; any other one may come from DNS rebinding."""
    bound = [] if settings.host in EVERY_ADDRESS else [settings.host]
    public = [_host_of(settings.public_url)] if settings.public_url else []
    return [f"[{host}]" if ":" in host else host for host in (*bound, *public, *listed(settings.allowed_hosts))]


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_URL is no address", hint="write it with its scheme: https://search.example.com"
        )
    return parts.hostname
