"""MCP of the service: the tools of each capability, and the guard that authenticates every request.

Refusals are said twice: as HTTP says them, with status and headers, and as an error of the protocol in the body.
Of the SDKs' clients some read the one and some the other. The code of the error is the status: codes of one's own
are to be outside of the range that JSON-RPC reserves (MCP 2026-07-28, Error Codes).

A tool that needs a scope:
- Whoever shows a token that lacks the scope is told which one is missing, with status 403 and
  `error="insufficient_scope"`: the authorization of MCP asks for that, so that a client can get a better token.
- The public is told what it would be told of a tool that does not exist. No client calls what is not listed, so a
  challenge would reach nobody but those who try names; an installation that wants everybody to sign in gives the
  public no scope, and then the first request is answered with 401.
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
# Whoever asks sooner has it loaded at once; until then it is in nobody's way.
QUIET_SECONDS = 5.0
EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104
OWN = "own"

# From the names of all tools to whoever is told of requests.
Observed = Callable[[Iterable[str]], ObserveMcp | None]


def unobserved(_: Iterable[str]) -> None:
    """For an endpoint that nobody watches."""


@asynccontextmanager
async def open_mcp(
    settings: Settings, parts: ServiceDependencies, identify: Identify, observed: Observed = unobserved
) -> AsyncIterator[tuple[BaseRoute, ...]]:
    """Its routes: `/mcp`, and what tells clients about tokens, where tokens are known."""
    tools = ServiceTools(parts)
    resource = (
        ProtectedResource(settings.public_url, settings.jwt_issuer, tools.scopes) if settings.jwt_keys else None
    )
    hosts, observe = known_hosts(settings), observed(tools.names)

    @asynccontextmanager
    async def open_apps() -> AsyncIterator[Mapping[str, ASGIApp]]:
        from toolscript.core.mcp.endpoint import LOOPBACK_HOSTS, mcp_asgi, only_hosts
        from toolscript.server.mcp_endpoint import Guard, create_service_server

        security = only_hosts([*LOOPBACK_HOSTS, *hosts], ("http", "https"))
        app, living = mcp_asgi(
            create_service_server(tools, __version__),
            security,
            MAX_BYTES,
            lambda inner: Guard(inner, tools, identify, security, resource, observe),
        )
        async with living:
            yield {OWN: app}

    later = LazyMount(MODULES, open_apps, lambda: asyncio.sleep(QUIET_SECONDS))
    async with later.open():
        yield (TemplatedRoute(MCP_PATH, later.app(OWN)), *(resource.routes() if resource else ()))


def known_hosts(settings: Settings) -> list[str]:
    """Names by which others may ask: whatever else leads here was made to, by a page that rebinds its own name."""
    bound = [] if settings.host in EVERY_ADDRESS else [settings.host]
    public = [_host(settings.public_url)] if settings.public_url else []
    return [f"[{host}]" if ":" in host else host for host in (*bound, *public, *listed(settings.allowed_hosts))]


def _host(url: str) -> str:
    try:
        read = urlsplit(url)
    except ValueError:
        read = urlsplit("")
    if read.scheme not in {"http", "https"} or not read.hostname:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_URL is no address", hint="write it with its scheme: https://search.example.com"
        )
    return read.hostname
