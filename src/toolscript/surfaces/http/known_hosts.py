"""By which names the service may be asked: a web page can have its own name lead to this machine."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.errors import Forbidden
from toolscript.surfaces.error_table import ERROR_TABLE, envelope_of
from toolscript.surfaces.loopback import host_name, is_loopback_host

HINT = (
    "name the host in TOOLSCRIPT_ALLOWED_HOSTS, or the address that clients know the service by in "
    "TOOLSCRIPT_PUBLIC_URL"
)


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
