"""Keys that verify tokens: their sources, the accepted types, and the cached key set."""

import asyncio
import ipaddress
import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import urlsplit

import httpx2
from joserfc.errors import JoseError
from joserfc.jwk import DictKey, JWKRegistry, Key
from joserfc.jws import JWSRegistry
from joserfc.util import base64_to_int

from toolscript.core.errors import SetupError, Unavailable

MAX_KEY_SET_BYTES = 256 * 1024
TIMEOUT_SECONDS = 5.0
# Uncompressed: a small compressed body could expand to a huge one.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_UNREADABLE = "is TOOLSCRIPT_JWT_KEYS right?"
_TOO_LARGE = f"the key set is larger than {MAX_KEY_SET_BYTES >> 10} KiB"
MAX_TOKEN_BYTES = 8 * 1024

# Key type and curve of each algorithm. The last two are the old and the new name of one algorithm.
KEY_TYPES: Mapping[str, tuple[str, str]] = {
    "RS256": ("RSA", ""),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}

MAX_KEYS = 100
MIN_RSA_BITS, MAX_RSA_BITS = 2048, 8192
_PUBLIC = ("kty", "n", "e", "crv", "x", "y")
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
_MALFORMED = 'it must be {"keys": [...]} with public keys'

# How long cached keys stay in use while the key set cannot be read.
MAX_SECONDS = 24 * 3600.0
# Without any key every request fails, so the key set is read more often.
MAX_PAUSE_WITHOUT_KEYS = 2.0
MIN_PAUSE = 1.0
HINT = "try again; administrators: check the key set of TOOLSCRIPT_JWT_KEYS"

logger = logging.getLogger(__name__)


class KeySource(Protocol):
    """Source of a key set. `fresh_seconds`: how long a read is fresh. `grace_seconds`: how much longer it is used
    during the next read. `pause_seconds`: minimum time between two refreshes for unknown keys.
    """

    @property
    def fresh_seconds(self) -> float: ...
    @property
    def grace_seconds(self) -> float: ...
    @property
    def pause_seconds(self) -> float: ...
    async def read(self) -> bytes: ...


class KeyFile:
    """Key set in a file, read at most once a second, so that a new key is used within a second."""

    fresh_seconds = 1.0
    grace_seconds = 10.0
    pause_seconds = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self) -> bytes:
        try:
            data = await asyncio.to_thread(self._read)
        except OSError as error:
            raise Unavailable(f"the key set cannot be read: {error.strerror}", hint=_UNREADABLE) from None
        if len(data) > MAX_KEY_SET_BYTES:
            raise Unavailable(_TOO_LARGE, hint=_UNREADABLE)
        return data

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(MAX_KEY_SET_BYTES + 1)


class KeyAddress:
    """Key set at a URL. Redirects are rejected: a redirect could replace the keys."""

    fresh_seconds = 600.0
    grace_seconds = 60.0
    pause_seconds = 30.0

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._is_local = _require_safe(url)

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._fetch()
        except TimeoutError:
            raise Unavailable("the key set: no answer in time", hint=_UNREADABLE) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # The error's message may quote the URL, which may contain a password.
            raise Unavailable(f"the key set cannot be fetched: {type(error).__name__}", hint=_UNREADABLE) from None

    def _client(self) -> httpx2.AsyncClient:
        """Create the HTTP client; a local address is not requested through a proxy."""
        return httpx2.AsyncClient(
            timeout=self._timeout_seconds,
            trust_env=not self._is_local,
            verify=not self._url.lower().startswith("http:"),
        )

    async def _fetch(self) -> bytes:
        # Loading the CA certificates blocks long enough to delay requests: do it in a thread.
        async with (
            await asyncio.to_thread(self._client) as client,
            client.stream("GET", self._url, headers=_HEADERS) as response,
        ):
            if response.is_redirect:
                raise Unavailable("the key set has moved", hint="set TOOLSCRIPT_JWT_KEYS to its own address")
            if response.status_code != 200:
                raise Unavailable(
                    f"the key set cannot be fetched: status {response.status_code}", hint=_UNREADABLE
                )
            data = bytearray()
            async for part in response.aiter_raw():
                data += part
                if len(data) > MAX_KEY_SET_BYTES:
                    raise Unavailable(_TOO_LARGE, hint=_UNREADABLE)
            return bytes(data)


def key_source(place: str) -> KeySource:
    """Return the source: a URL if it has a scheme, otherwise a file."""
    if "://" not in place:
        return KeyFile(Path(place).expanduser())
    return KeyAddress(place)


def _require_safe(url: str) -> bool:
    """Return whether the URL is on this machine; raise SetupError for http:// anywhere else."""
    try:
        split = urlsplit(url)
        scheme, host = split.scheme.lower(), split.hostname or ""
        is_local = _is_loopback(host)
    except ValueError:
        scheme, host, is_local = "", "", False
    if not host or scheme not in ("http", "https"):
        raise SetupError("TOOLSCRIPT_JWT_KEYS is neither a file nor an https address", hint=_UNREADABLE)
    if scheme == "http" and not is_local:
        raise SetupError("TOOLSCRIPT_JWT_KEYS: keys are fetched only over https", hint="write https://...")
    return is_local


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def algorithms_for(key_type: object, curve: object, declared: object) -> frozenset[str]:
    """Return the algorithms for a key of this type, restricted to the one that the key declares, if any."""
    suitable = {name for name, fit in KEY_TYPES.items() if fit == (key_type, curve or "")}
    return (
        frozenset(suitable)
        if declared is None or (isinstance(declared, str) and declared in suitable)
        else frozenset()
    )


def _registry() -> JWSRegistry:
    """Return a registry of only the accepted algorithms, so that no token header can select another."""
    registry = JWSRegistry(algorithms=list(KEY_TYPES), strict_check_header=False)
    all_algorithms = JWSRegistry.algorithms
    registry.algorithms = {name: all_algorithms[name] for name in KEY_TYPES} | {"EdDSA": all_algorithms["Ed25519"]}
    registry.max_header_length = registry.max_payload_length = registry.max_signature_length = MAX_TOKEN_BYTES
    return registry


SIGNATURES = _registry()


@dataclass(frozen=True)
class VerifyingKey:
    """Public key. `algorithms` are those that its type and its declaration allow."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key


@dataclass(frozen=True)
class KeySet:
    """Key set. `private` is the number of private keys in it, which must not be published."""

    keys: tuple[VerifyingKey, ...]
    private: int = 0

    def matching(self, algorithm: str, kid: str | None) -> list[VerifyingKey]:
        """Return the keys for an algorithm with this `kid`; without a `kid`, all keys for the algorithm."""
        fit = [key for key in self.keys if algorithm in key.algorithms]
        return fit if kid is None else [key for key in fit if key.kid == kid]


def read_key_set(data: bytes) -> KeySet:
    """Parse a key set; raise Unavailable if it is malformed. Unusable keys are skipped."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Unavailable("the key set is not JSON", hint=_MALFORMED) from None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise Unavailable("the key set has no list `keys`", hint=_MALFORMED)
    if len(keys) > MAX_KEYS:
        raise Unavailable(f"the key set has more than {MAX_KEYS} keys", hint=_MALFORMED)
    objects = [entry for entry in keys if isinstance(entry, dict)]
    public = [entry for entry in objects if not _PRIVATE & entry.keys()]
    usable = [key for entry in public if (key := _verifying_key(entry)) is not None]
    return KeySet(tuple(usable), private=len(objects) - len(public))


def _verifying_key(data: Mapping[str, object]) -> VerifyingKey | None:
    kid, algorithms = data.get("kid"), algorithms_for(data.get("kty"), data.get("crv"), data.get("alg"))
    operations = data.get("key_ops", ["verify"])
    is_for_signatures = data.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
    if not algorithms or not is_for_signatures or not (kid is None or isinstance(kid, str)):
        return None
    try:
        if data.get("kty") == "RSA" and not _is_sound_rsa(str(data.get("n"))):
            return None
        key = JWKRegistry.import_key(cast("DictKey", {name: data[name] for name in _PUBLIC if name in data}))
    except (JoseError, ValueError, TypeError):
        return None
    return VerifyingKey(kid, algorithms, key)


def _is_sound_rsa(modulus: str) -> bool:
    """Return whether the key size is acceptable: smaller keys are weak, larger ones slow down every request."""
    return MIN_RSA_BITS <= base64_to_int(modulus).bit_length() <= MAX_RSA_BITS


class KeyRing:
    """Cached key set that refreshes itself. `now` is a monotonic clock."""

    def __init__(self, source: KeySource, now: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._now = now
        self._data = b""
        self._keys: KeySet | None = None
        self._read_at = self._refreshed_at = self._failed_at = -math.inf
        self._failure = ""
        self._reading: asyncio.Task[None] | None = None

    async def keys(self) -> KeySet:
        """Return the current keys; raise Unavailable if none were ever read, or the last read is too old."""
        overdue = self._now() - self._read_at - self._source.fresh_seconds
        if overdue >= 0 and self._may_read():
            reading = self._start_read()
            # Within the grace period, or after a failed read, requests use cached keys and do not wait.
            if self._cached() is None or (overdue >= self._source.grace_seconds and not self._failure):
                await asyncio.shield(reading)
        cached = self._cached()
        if cached is None:
            raise Unavailable(self._failure, hint=HINT)
        return cached

    async def refresh(self) -> KeySet:
        """Read the key set again for an unknown key, which may be new; rate limited against invalid tokens."""
        if self._now() - self._refreshed_at >= self._source.pause_seconds:
            self._refreshed_at = self._now()
            await asyncio.shield(self._start_read())
        elif self._reading is not None and not self._reading.done():
            await asyncio.shield(self._reading)
        return await self.keys()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _cached(self) -> KeySet | None:
        return self._keys if self._now() - self._read_at < MAX_SECONDS else None

    def _may_read(self) -> bool:
        pause = max(self._source.pause_seconds, MIN_PAUSE)
        if self._cached() is None:
            pause = min(pause, MAX_PAUSE_WITHOUT_KEYS)
        return not self._failure or self._now() - self._failed_at >= pause

    def _start_read(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        try:
            self._update(await self._source.read())
        except Unavailable as error:
            if not self._failure:
                logger.warning("the key set cannot be read", extra={"part": "jwt_keys", "reason": error.message})
            self._failure, self._failed_at = error.message, self._now()

    def _update(self, data: bytes) -> None:
        if self._keys is None or data != self._data:
            self._keys, self._data = read_key_set(data), data
            if self._keys.private:
                reason = f"{self._keys.private} private: anyone who reads them can sign; ignored, replace them"
                logger.warning("a key set contains private keys", extra={"part": "jwt_keys", "reason": reason})
        if self._failure:
            logger.info("the key set can be read again", extra={"part": "jwt_keys"})
        self._failure, self._read_at = "", self._now()
