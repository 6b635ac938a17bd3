"""Adds a server's token to requests to that server, and to no other; a refused token is renewed once."""

from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2

from toolscript.core.mcp_client.oauth.challenge import Challenge

if TYPE_CHECKING:
    from toolscript.core.mcp_client.oauth.tokens import Credentials


class BearerAuth(httpx2.Auth):
    """`challenge` is that of the last answer, if it refused the request for want of a (better) token."""

    def __init__(self, credentials: "Credentials", on_retry: Callable[[], None]) -> None:
        self.challenge: Challenge | None = None
        self._credentials = credentials
        self._on_retry = on_retry
        self._origin = _origin(httpx2.URL(credentials.url))

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if _origin(request.url) != self._origin:
            # Also where a server names another address, or redirects: its token stays with it.
            yield request
            return
        token = await self._credentials.access_token()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        refused = token if response.status_code == HTTPStatus.UNAUTHORIZED else ""
        if refused and (other := await self._credentials.replaced(refused)):
            self._on_retry()
            request.headers["Authorization"] = f"Bearer {other}"
            response = yield request
        self._note(response)

    def _note(self, response: httpx2.Response) -> None:
        challenge = Challenge.of(response.status_code, response.headers.get("www-authenticate", ""))
        refused = response.status_code == HTTPStatus.UNAUTHORIZED or challenge.wants_more
        self.challenge = challenge if refused else None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
