"""Names and addresses of this machine, and the names that a server answers to."""

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

HINT = (
    "name the host in TOOLSCRIPT_ALLOWED_HOSTS, or the address that clients know the service by in "
    "TOOLSCRIPT_PUBLIC_URL"
)


def is_loopback_host(host: str) -> bool:
    """Of a Host header, with a port or without."""
    return host_name(host) in NAMES


def host_name(host: str) -> str:
    """The name in a Host header, without its port and brackets; empty where it is none."""
    match = _HOST.fullmatch(host)
    return "" if match is None else (match["six"] or match["name"]).lower()


def is_loopback_origin(origin: str) -> bool:
    """An origin is a scheme and a host and nothing else: what is more is there to be misread."""
    match = _ORIGIN.fullmatch(origin)
    return match is not None and is_loopback_host(match["host"])


def is_loopback_address(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


class KnownHosts:
    """For all routes alike. This machine's own names are always known."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.strip("[]").lower() for host in hosts if host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_known(Headers(scope=scope).getlist("host")):
            await self._app(scope, receive, send)
            return
        refused = Forbidden(
            "this service is not known by the name it was asked by", hint=HINT, details={"header": "Host"}
        )
        status = ERROR_TABLE[Forbidden].http_status
        await JSONResponse(envelope_of(refused), status)(scope, receive, send)

    def _is_known(self, named: list[str]) -> bool:
        return len(named) == 1 and (is_loopback_host(named[0]) or host_name(named[0]) in self._hosts)
