"""Keys that verify tokens: where they come from, which are accepted, and the ring of those in use."""

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
# Not compressed: a little could become very much.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_UNREADABLE = "is TOOLSCRIPT_JWT_KEYS right?"
_TOO_LARGE = f"the key set is larger than {MAX_KEY_SET_BYTES >> 10} KiB"
MAX_TOKEN_BYTES = 8 * 1024

# The type of key and the curve that each needs. The last two are old and new names of the same.
FITS: Mapping[str, tuple[str, str]] = {
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

# How long known keys stay in use when nobody can say whether they still hold.
MAX_SECONDS = 24 * 3600.0
# Without any key nobody is answered, and so its issuer is asked more often than otherwise.
MAX_PAUSE_WITHOUT_KEYS = 2.0
MIN_PAUSE = 1.0
HINT = "try again; whoever runs this service finds the key set named by TOOLSCRIPT_JWT_KEYS"

logger = logging.getLogger(__name__)


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
            raise Unavailable(f"the key set cannot be read: {error.strerror}", hint=_UNREADABLE) from None
        if len(data) > MAX_KEY_SET_BYTES:
            raise Unavailable(_TOO_LARGE, hint=_UNREADABLE)
        return data

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(MAX_KEY_SET_BYTES + 1)


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
            raise Unavailable("the key set: no answer in time", hint=_UNREADABLE) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # Its message may quote the address, and an address may hold a password.
            raise Unavailable(f"the key set cannot be fetched: {type(error).__name__}", hint=_UNREADABLE) from None

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
                raise Unavailable(f"the key set cannot be fetched: status {answer.status_code}", hint=_UNREADABLE)
            data = bytearray()
            async for part in answer.aiter_raw():
                data += part
                if len(data) > MAX_KEY_SET_BYTES:
                    raise Unavailable(_TOO_LARGE, hint=_UNREADABLE)
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
        raise SetupError("TOOLSCRIPT_JWT_KEYS is neither a file nor an https address", hint=_UNREADABLE)
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


def fitting(key_type: object, curve: object, own: object) -> frozenset[str]:
    """Names of algorithms for a key of this type, which may name its `own`."""
    suited = {name for name, fit in FITS.items() if fit == (key_type, curve or "")}
    return frozenset(suited) if own is None or (isinstance(own, str) and own in suited) else frozenset()


def _registry() -> JWSRegistry:
    """Knows no algorithm but ours, so that no header can ask for another."""
    registry = JWSRegistry(algorithms=list(FITS), strict_check_header=False)
    known = JWSRegistry.algorithms
    registry.algorithms = {name: known[name] for name in FITS} | {"EdDSA": known["Ed25519"]}
    registry.max_header_length = registry.max_payload_length = registry.max_signature_length = MAX_TOKEN_BYTES
    return registry


SIGNATURES = _registry()


@dataclass(frozen=True)
class VerifyingKey:
    """A public key. `algorithms` are those it may be used with, by its type and by its own word."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key


@dataclass(frozen=True)
class KeySet:
    """`private`: how many keys were there that nobody should ever have been shown."""

    keys: tuple[VerifyingKey, ...]
    private: int = 0

    def fitting(self, algorithm: str, kid: str | None) -> list[VerifyingKey]:
        """Those of this name; where none is named, all that could have signed."""
        fit = [key for key in self.keys if algorithm in key.algorithms]
        return fit if kid is None else [key for key in fit if key.kid == kid]


def read_key_set(data: bytes) -> KeySet:
    """Refused when it is no key set; a key in it that cannot be used is passed over."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Unavailable("the key set is not JSON", hint=_MALFORMED) from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise Unavailable("the key set has no list `keys`", hint=_MALFORMED)
    if len(keys) > MAX_KEYS:
        raise Unavailable(f"the key set has more than {MAX_KEYS} keys", hint=_MALFORMED)
    objects = [one for one in keys if isinstance(one, dict)]
    public = [one for one in objects if not _PRIVATE & one.keys()]
    usable = [key for one in public if (key := _verifying_key(one)) is not None]
    return KeySet(tuple(usable), private=len(objects) - len(public))


def _verifying_key(data: Mapping[str, object]) -> VerifyingKey | None:
    kid, algorithms = data.get("kid"), fitting(data.get("kty"), data.get("crv"), data.get("alg"))
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
    """Smaller ones can be broken; larger ones would make every request slow."""
    return MIN_RSA_BITS <= base64_to_int(modulus).bit_length() <= MAX_RSA_BITS


class KeyRing:
    """`now` is a clock that never goes back."""

    def __init__(self, source: KeySource, now: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._now = now
        self._data = b""
        self._keys: KeySet | None = None
        self._read_at = self._looked_at = self._failed_at = -math.inf
        self._failure = ""
        self._reading: asyncio.Task[None] | None = None

    async def keys(self) -> KeySet:
        """Those in force. Unavailable when there have never been any, or not for too long."""
        overdue = self._now() - self._read_at - self._source.fresh_seconds
        if overdue >= 0 and self._may_try():
            reading = self._read_once()
            # Where many ask, nobody waits; nor for an issuer that was away a moment ago, while there are keys.
            if self._known() is None or (overdue >= self._source.grace_seconds and not self._failure):
                await asyncio.shield(reading)
        known = self._known()
        if known is None:
            raise Unavailable(self._failure, hint=HINT)
        return known

    async def look_again(self) -> KeySet:
        """For a token whose key is not there: it may be new. Whoever sends nonsense cannot ask for this often."""
        if self._now() - self._looked_at >= self._source.pause_seconds:
            self._looked_at = self._now()
            await asyncio.shield(self._read_once())
        elif self._reading is not None and not self._reading.done():
            await asyncio.shield(self._reading)
        return await self.keys()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _known(self) -> KeySet | None:
        return self._keys if self._now() - self._read_at < MAX_SECONDS else None

    def _may_try(self) -> bool:
        pause = max(self._source.pause_seconds, MIN_PAUSE)
        if self._known() is None:
            pause = min(pause, MAX_PAUSE_WITHOUT_KEYS)
        return not self._failure or self._now() - self._failed_at >= pause

    def _read_once(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        try:
            self._take(await self._source.read())
        except Unavailable as error:
            if not self._failure:
                logger.warning(
                    "keys of tokens cannot be read", extra={"part": "jwt_keys", "reason": error.message}
                )
            self._failure, self._failed_at = error.message, self._now()

    def _take(self, data: bytes) -> None:
        if self._keys is None or data != self._data:
            self._keys, self._data = read_key_set(data), data
            if self._keys.private:
                reason = f"{self._keys.private} private: whoever can read them can sign; left out, replace them"
                logger.warning("a key set shows private keys", extra={"part": "jwt_keys", "reason": reason})
        if self._failure:
            logger.info("keys of tokens are read again", extra={"part": "jwt_keys"})
        self._failure, self._read_at = "", self._now()
