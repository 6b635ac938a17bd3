"""Loopback names and addresses, and the host names that a server accepts."""

import ipaddress
import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, Forbidden, envelope_of

NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"\[(?P<six>[0-9a-fA-F:]+)\](?::\d{1,5})?|(?P<name>[^:\[\]/@\s]+)(?::\d{1,5})?")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<host>.+)")

HINT = "name the host in TOOLSCRIPT_ALLOWED_HOSTS, or the public address of the service in TOOLSCRIPT_PUBLIC_URL"


def is_loopback_host(host: str) -> bool:
    """Return whether a Host header, with or without a port, names this machine."""
    return host_name(host) in NAMES


def host_name(host: str) -> str:
    """Return the name in a Host header without port and brackets; empty if invalid."""
    match = _HOST.fullmatch(host)
    return "" if match is None else (match["six"] or match["name"]).lower()


def is_loopback_origin(origin: str) -> bool:
    """Return whether an Origin is this machine. An origin is only scheme and host; anything longer is rejected."""
    match = _ORIGIN.fullmatch(origin)
    return match is not None and is_loopback_host(match["host"])


def is_loopback_address(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


class AllowedHosts:
    """Middleware that rejects requests with an unknown Host header. Loopback names are always accepted."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.strip("[]").lower() for host in hosts if host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_known(Headers(scope=scope).getlist("host")):
            await self._app(scope, receive, send)
            return
        refused = Forbidden(
            "this service does not accept the Host of this request", hint=HINT, details={"header": "Host"}
        )
        status = ERROR_TABLE[Forbidden].http_status
        await JSONResponse(envelope_of(refused), status)(scope, receive, send)

    def _is_known(self, named: list[str]) -> bool:
        return len(named) == 1 and (is_loopback_host(named[0]) or host_name(named[0]) in self._hosts)
