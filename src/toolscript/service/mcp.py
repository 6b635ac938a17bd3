"""`/mcp` of the service: what is wired to what. Its SDK is loaded while other requests are answered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from toolscript import __version__
from toolscript.errors import SetupError
from toolscript.settings.access import listed
from toolscript.settings.service import Settings
from toolscript.surfaces.http.protected_resource import MCP_PATH, ProtectedResource
from toolscript.surfaces.http.templated_route import TemplatedRoute
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.mcp.loaded_later import LoadedLater
from toolscript.surfaces.mcp_service.parts import ObserveMcp, ServiceParts
from toolscript.surfaces.mcp_service.tools import ServiceTools
from toolscript.surfaces.request_context import MOST_BYTES

MODULES = ("toolscript.surfaces.mcp_service.endpoint", "toolscript.surfaces.mcp_service.guard")
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
    settings: Settings, parts: ServiceParts, visitor_of: VisitorOf, observed: Observed = unobserved
) -> AsyncIterator[tuple[BaseRoute, ...]]:
    """Its routes: `/mcp`, and what tells clients about tokens, where tokens are known."""
    tools = ServiceTools(parts)
    resource = (
        ProtectedResource(settings.public_url, settings.jwt_issuer, tools.scopes) if settings.jwt_keys else None
    )
    hosts, observe = known_hosts(settings), observed(tools.names)

    @asynccontextmanager
    async def open_apps() -> AsyncIterator[Mapping[str, ASGIApp]]:
        from toolscript.surfaces.mcp.endpoint import LOOPBACK_HOSTS, mcp_asgi, only_hosts
        from toolscript.surfaces.mcp_service.endpoint import create_service_server
        from toolscript.surfaces.mcp_service.guard import Guard

        security = only_hosts([*LOOPBACK_HOSTS, *hosts], ("http", "https"))
        app, living = mcp_asgi(
            create_service_server(tools, __version__),
            security,
            MOST_BYTES,
            lambda inner: Guard(inner, tools, visitor_of, security, resource, observe),
        )
        async with living:
            yield {OWN: app}

    later = LoadedLater(MODULES, open_apps, lambda: asyncio.sleep(QUIET_SECONDS))
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
