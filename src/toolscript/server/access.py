"""Access as the settings say it: plans, tenants, tokens, and names that the server answers to."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict

from toolscript.core.settings.service import Settings, listed
from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.hosts import is_loopback_host
from toolscript.server.app import ApiAccess
from toolscript.server.mcp import known_hosts
from toolscript.server.processes import bound, bound_file


def admin_access(settings: Settings) -> AdminAccess:
    return AdminAccess(
        settings.admin_token.get_secret_value(), settings.environment == "development", settings.socket
    )


def api_access(settings: Settings) -> ApiAccess:
    return ApiAccess(admin_access(settings), answered_hosts(settings), settings.docs)


def answered_hosts(settings: Settings) -> list[str] | None:
    """None: any. Elsewhere than on this machine, whoever reaches it needs no page of others to do so."""
    guarded = is_loopback_host(settings.host) or settings.allowed_hosts
    return known_hosts(settings) if guarded else None


class BelievedHeaders(TypedDict):
    """As uvicorn calls them, which would otherwise believe whoever asks from this machine."""

    proxy_headers: bool
    forwarded_allow_ips: list[str]


def believed_headers(settings: Settings) -> BelievedHeaders:
    proxies = listed(settings.trusted_proxies)
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": proxies}


def full_path(socket_file: str) -> str:
    """Requests are known by it, so it has to be the same wherever it is told."""
    return str(Path(socket_file).expanduser().absolute()) if socket_file else ""


@contextmanager
def sockets_of(settings: Settings) -> Iterator[list[socket.socket]]:
    """The port and, where one is named, the Unix socket. None of them listens yet."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(bound(settings.host, settings.port))]
        if settings.socket:
            sockets.append(stack.enter_context(bound_file(settings.socket, settings.socket_mode)))
        yield sockets
