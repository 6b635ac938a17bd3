"""Where a key set is read: a file, or an address of whoever issues the tokens."""

import asyncio
import ipaddress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx2

from toolscript.errors import SetupError, Unavailable

MOST_BYTES = 256 * 1024
TIMEOUT_SECONDS = 5.0
# Not compressed: a little could become very much.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_HINT = "is TOOLSCRIPT_JWT_KEYS right?"
_TOO_LARGE = f"the key set is larger than {MOST_BYTES >> 10} KiB"


class KeySource(Protocol):
    """`fresh_seconds`: how long what was read is as good as new. `grace_seconds`: how much longer it is used while
    it is read again. `pause_seconds`: between two wishes for more.
    """

    @property
    def fresh_seconds(self) -> float: ...
    @property
    def grace_seconds(self) -> float: ...
    @property
    def pause_seconds(self) -> float: ...
    async def read(self) -> bytes: ...


class KeyFile:
    """Looked at again every second in which somebody asks: whoever replaces a key waits no longer."""

    fresh_seconds = 1.0
    grace_seconds = 10.0
    pause_seconds = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self) -> bytes:
        try:
            data = await asyncio.to_thread(self._read)
        except OSError as error:
            raise Unavailable(f"the key set cannot be read: {error.strerror}", hint=_HINT) from None
        if len(data) > MOST_BYTES:
            raise Unavailable(_TOO_LARGE, hint=_HINT)
        return data

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(MOST_BYTES + 1)


class KeyAddress:
    """Goes where it was sent and nowhere else: who can redirect it could choose the keys."""

    fresh_seconds = 600.0
    grace_seconds = 60.0
    pause_seconds = 30.0

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._is_here = _require_safe(url)

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._fetch()
        except TimeoutError:
            raise Unavailable("the key set: no answer in time", hint=_HINT) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # Its message may quote the address, and an address may hold a password.
            raise Unavailable(f"the key set cannot be fetched: {type(error).__name__}", hint=_HINT) from None

    def _client(self) -> httpx2.AsyncClient:
        """What is on this machine is not asked for through the proxy that leads out of it."""
        return httpx2.AsyncClient(
            timeout=self._timeout_seconds,
            trust_env=not self._is_here,
            verify=not self._url.lower().startswith("http:"),
        )

    async def _fetch(self) -> bytes:
        # Reading whom to trust takes so long that requests would notice.
        async with (
            await asyncio.to_thread(self._client) as client,
            client.stream("GET", self._url, headers=_HEADERS) as answer,
        ):
            if answer.is_redirect:
                raise Unavailable("the key set has moved", hint="set TOOLSCRIPT_JWT_KEYS to its own address")
            if answer.status_code != 200:
                raise Unavailable(f"the key set cannot be fetched: status {answer.status_code}", hint=_HINT)
            data = bytearray()
            async for part in answer.aiter_raw():
                data += part
                if len(data) > MOST_BYTES:
                    raise Unavailable(_TOO_LARGE, hint=_HINT)
            return bytes(data)


def key_source(place: str) -> KeySource:
    """A file, unless it is written as an address."""
    if "://" not in place:
        return KeyFile(Path(place).expanduser())
    return KeyAddress(place)


def _require_safe(url: str) -> bool:
    """Whether the address is on this machine, the one place that may be asked without encryption."""
    try:
        split = urlsplit(url)
        scheme, host = split.scheme.lower(), split.hostname or ""
        is_here = _is_loopback(host)
    except ValueError:
        scheme, host, is_here = "", "", False
    if not host or scheme not in ("http", "https"):
        raise SetupError("TOOLSCRIPT_JWT_KEYS is neither a file nor an https address", hint=_HINT)
    if scheme == "http" and not is_here:
        raise SetupError("TOOLSCRIPT_JWT_KEYS: keys are fetched over https alone", hint="write https://...")
    return is_here


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
