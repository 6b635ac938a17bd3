"""Access rules from the settings: administrators, public scopes, allowed hosts, trusted proxies and sockets."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict

from toolscript.core.auth.model import NAMED_ONLY, Scope
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings, listed
from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.hosts import is_loopback_host
from toolscript.server.app import ApiAccess
from toolscript.server.mcp import known_hosts
from toolscript.server.processes import bind_unix_socket, bound


def admin_access(settings: Settings) -> AdminAccess:
    return AdminAccess(
        settings.admin_token.get_secret_value(), settings.environment == "development", settings.socket
    )


def public_scopes(settings: Settings) -> frozenset[Scope]:
    """Return the scopes of clients without a token."""
    if settings.public_scopes is None:
        is_development = settings.environment == "development"
        return frozenset({Scope.KNOWLEDGE_READ, *([Scope.TOOLS_READ] if is_development else [])})
    allowed = ", ".join(scope for scope in Scope if scope not in NAMED_ONLY)
    try:
        scopes = frozenset(Scope(name) for name in settings.public_scopes.split())
    except ValueError:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_SCOPES names an unknown scope", hint=f"the scopes are {allowed}"
        ) from None
    if refused := sorted(scopes & NAMED_ONLY):
        raise SetupError(
            f"TOOLSCRIPT_PUBLIC_SCOPES may not name {', '.join(refused)}",
            hint=f"it is for tokens that name it; the scopes that can be public are {allowed}",
        )
    return scopes


def api_access(settings: Settings) -> ApiAccess:
    return ApiAccess(admin_access(settings), allowed_hosts_of(settings), settings.docs)


def allowed_hosts_of(settings: Settings) -> list[str] | None:
    """Return the allowed host names; None allows any.

    Off loopback there is no default check: clients that can reach the server need no DNS rebinding to do so.
    """
    guarded = is_loopback_host(settings.host) or settings.allowed_hosts
    return known_hosts(settings) if guarded else None


class ProxyHeaders(TypedDict):
    """Options of uvicorn, whose default is to trust forwarded headers from any client on this machine."""

    proxy_headers: bool
    forwarded_allow_ips: list[str]


def trusted_proxy_options(settings: Settings) -> ProxyHeaders:
    proxies = listed(settings.trusted_proxies)
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": proxies}


def full_path(socket_file: str) -> str:
    """Return the absolute path: requests are recognized by it, so every place must use the same one."""
    return str(Path(socket_file).expanduser().absolute()) if socket_file else ""


@contextmanager
def open_sockets(settings: Settings) -> Iterator[list[socket.socket]]:
    """Bind the port and the Unix socket, if one is set. None of them listens yet."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(bound(settings.host, settings.port))]
        if settings.socket:
            sockets.append(stack.enter_context(bind_unix_socket(settings.socket, settings.socket_mode)))
        yield sockets
