"""Who may ask: the person the gateway runs for, by their token or as the owner of the connection; no web page."""

import hmac
from asyncio import to_thread
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.errors import Forbidden, ToolscriptError, Unauthorized
from toolscript.surfaces.error_table import ERROR_TABLE, envelope_of
from toolscript.surfaces.loopback import is_loopback_host, is_loopback_origin

# A browser says where a request comes from: this gateway's own page, or the person who typed the address.
OWN_SITES = frozenset({"same-origin", "none"})

Address = tuple[str, int]


class Guard:
    """Every program of every user of this machine can reach the port, and a page in a browser can be made to.

    `is_same_person` is asked with both ends of the connection; None: only the token counts.
    """

    def __init__(
        self, app: ASGIApp, token: str, is_same_person: Callable[[Address, Address], bool] | None = None
    ) -> None:
        self._app = app
        self._token = token
        self._is_same_person = is_same_person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refused := await self._refusal(scope)):
            status = ERROR_TABLE[type(refused)].http_status
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await JSONResponse(envelope_of(refused), status, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> ToolscriptError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_loopback_host(hosts[0]):
            return Forbidden("this gateway answers to 127.0.0.1 and localhost only", details={"header": "Host"})
        if header := _foreign_page(headers, scope):
            return Forbidden("no web page but this gateway's own may ask it", details={"header": header})
        if scope["path"] != "/livez" and not self._shows_token(headers) and not await self._is_known(scope):
            return Unauthorized("this gateway belongs to one person and wants their token", hint=_HOW_TO_SHOW_IT)
        return None

    def _shows_token(self, headers: Headers) -> bool:
        kind, _, shown = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(shown.strip().encode(), self._token.encode())
        return kind.lower() == "bearer" and same and bool(self._token)

    async def _is_known(self, scope: Scope) -> bool:
        """A browser is the person's own, and what a page has it send need not be: it has to show the token.

        Browsers say `Sec-Fetch-Site`, and no script can keep them from it; other clients may send an own `Origin`.
        """
        client, server, headers = scope.get("client"), scope.get("server"), Headers(scope=scope)
        by_a_browser = "sec-fetch-site" in headers
        if self._is_same_person is None or not client or not server or by_a_browser:
            return False
        return await to_thread(self._is_same_person, (client[0], client[1]), (server[0], server[1]))


_HOW_TO_SHOW_IT = (
    "run `toolscript gateway env` as that person and send `Authorization: Bearer <token>`; "
    "`toolscript config connect CLIENT --http` writes it into a client's config"
)


def _foreign_page(headers: Headers, scope: Scope) -> str:
    """The header that gives a page away, or nothing. A page of another port is a stranger's, too."""
    _, port = scope["server"]
    for origin in headers.getlist("origin"):
        if not (is_loopback_origin(origin) and origin.endswith(f":{port}")):
            return "Origin"
    if not OWN_SITES.issuperset(headers.getlist("sec-fetch-site")):
        return "Sec-Fetch-Site"
    return ""
