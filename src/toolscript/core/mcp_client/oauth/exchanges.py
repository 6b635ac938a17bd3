"""Requests to authorization servers: bounded in time and size, without redirects, errors without secrets."""

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.mcp_client.oauth.grant import Registration
from toolscript.core.text import visible

MAX_BYTES = 256 * 1024
SECONDS = 20.0
MAX_DESCRIPTION = 200
MIN_SECRET = 4
BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"

_SECRET_FIELDS = ("code", "code_verifier", "refresh_token", "token", "client_secret")
_BUSY = 429
UNKNOWN_CLIENT, UNREVOCABLE = "invalid_client", "unsupported_token_type"
# Statuses of a refusal by OAuth; codes that are one with any status, and codes of what passes. Anything else is
# of whoever is in between, such as a proxy, and says nothing about the tokens.
_REFUSALS = frozenset({200, 400, 401})
_FINAL = frozenset(
    {
        "invalid_grant",
        UNKNOWN_CLIENT,
        "unauthorized_client",
        "bad_refresh_token",
        "invalid_refresh_token",
        UNREVOCABLE,
    }
)
_PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def to_json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class Refused(ServerRejected):
    """The authorization server refused by OAuth. `error` is its code, such as `invalid_grant`."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


def without_blanks(data: Any) -> Any:
    """Return a JSON object without its null and empty fields: some servers write what they leave out."""
    return (
        {key: value for key, value in data.items() if value not in (None, "")} if isinstance(data, dict) else data
    )


def is_unknown_client(error: Exception) -> bool:
    """Return whether the authorization server has forgotten our registration."""
    return isinstance(error, Refused) and error.error == UNKNOWN_CLIENT


async def send(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    *,
    headers_only: bool = False,
) -> Answer:
    """Send one request. A redirect is an answer like any other: it is never followed."""
    timeout = httpx2.Timeout(SECONDS)
    try:
        async with asyncio.timeout(SECONDS), httpx2.AsyncClient(timeout=timeout, verify=await _tls()) as client:
            request = client.build_request(
                method, url, headers={"Accept": "application/json", **(headers or {})}, content=content or None
            )
            answer = await client.send(request, stream=True, follow_redirects=False)
            try:
                body = b"" if headers_only else await _body(answer)
                return Answer(answer.status_code, dict(answer.headers), body)
            finally:
                await answer.aclose()
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise ServerUnavailable(f"{place_of(url)} cannot be reached: {type(error).__name__}") from error


async def _tls() -> ssl.SSLContext:
    """Return the certificate authorities of the system; reading them takes longer than most requests."""
    return await asyncio.to_thread(_certificate_authorities)


@cache
def _certificate_authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def _body(answer: httpx2.Response) -> bytes:
    body = b""
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            raise ServerRejected(f"an answer of {place_of(str(answer.url))} is larger than {MAX_BYTES} bytes")
    return body


async def post_credentials(url: str, form: Mapping[str, str], client: Registration) -> Any:
    """Post a form that has credentials, authenticated as our client, and return the answer's JSON."""
    fields, headers = _authenticated(form, client)
    encoded = str(httpx2.QueryParams(fields)).encode()
    answer = await send("POST", url, {"Content-Type": "application/x-www-form-urlencoded", **headers}, encoded)
    return checked(url, answer, [*(fields.get(name, "") for name in _SECRET_FIELDS), client.client_secret])


async def post_json(url: str, data: Mapping[str, object]) -> Any:
    answer = await send("POST", url, {"Content-Type": "application/json"}, json.dumps(data).encode())
    return checked(url, answer)


def checked(url: str, answer: Answer, secrets: list[str] | None = None) -> Any:
    """Return the JSON of a success; raise what the authorization server said, without our secrets."""
    place = place_of(url)
    if answer.status >= 500 or answer.status == _BUSY:
        raise ServerUnavailable(f"{place} answered HTTP {answer.status}")
    if 300 <= answer.status < 400:
        raise ServerRejected(f"{place} redirects a request that has credentials; it was not followed")
    data = answer.to_json()
    fields = data if isinstance(data, dict) else {}
    # GitHub refuses with the status of a success.
    if answer.status < 300 and not fields.get("error"):
        return data
    error, about = str(fields.get("error") or ""), str(fields.get("error_description") or "")
    # The longest first, whose parts may be another; a few letters are in any text, and tell nothing.
    for secret in sorted(secrets or (), key=len, reverse=True):
        if len(secret) >= MIN_SECRET:
            about, error = about.replace(secret, "***"), error.replace(secret, "***")
    said = ": ".join(filter(None, (shown(error), shown(about)))) or f"HTTP {answer.status}"
    message = f"{place} refused: {said}"
    raise Refused(message, error) if _is_by_oauth(answer.status, error) else ServerRejected(message)


def _is_by_oauth(status: int, error: str) -> bool:
    return error in _FINAL or (bool(error) and error not in _PASSING and status in _REFUSALS)


def _authenticated(form: Mapping[str, str], client: Registration) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers with the client's authentication (RFC 6749, section 2.3.1)."""
    if client.auth_method == BASIC and client.client_secret:
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        return dict(form), {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    fields = {**form, "client_id": client.client_id}
    if client.auth_method == POST and client.client_secret:
        fields["client_secret"] = client.client_secret
    return fields, {}


def place_of(url: str) -> str:
    """Return the host of an address: the rest of it may be a secret."""
    try:
        parts = urlsplit(url)
        return shown(parts.netloc.rpartition("@")[2]) or "the address"
    except ValueError:
        return "the address"


def shown(text: str) -> str:
    """Return text of a server as one short line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 3]}..."
