"""A JSON Web Key Set, read: the keys that can verify a token. What it holds besides is left alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from joserfc.errors import JoseError
from joserfc.jwk import DictKey, JWKRegistry, Key
from joserfc.util import base64_to_int

from toolscript.adapters.jwt_tokens.algorithms import fitting
from toolscript.errors import Unavailable

MOST_KEYS = 100
SMALLEST_RSA_BITS, LARGEST_RSA_BITS = 2048, 8192

_PUBLIC = ("kty", "n", "e", "crv", "x", "y")
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
_HINT = 'it must be {"keys": [...]} with public keys'


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
        fit = [one for one in self.keys if algorithm in one.algorithms]
        return fit if kid is None else [one for one in fit if one.kid == kid]


def read_key_set(data: bytes) -> KeySet:
    """Refused when it is no key set; a key in it that cannot be used is passed over."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Unavailable("the key set is not JSON", hint=_HINT) from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise Unavailable("the key set has no list `keys`", hint=_HINT)
    if len(keys) > MOST_KEYS:
        raise Unavailable(f"the key set has more than {MOST_KEYS} keys", hint=_HINT)
    objects = [one for one in keys if isinstance(one, dict)]
    public = [one for one in objects if not _PRIVATE & one.keys()]
    usable = [key for one in public if (key := _verifying_key(one)) is not None]
    return KeySet(tuple(usable), private=len(objects) - len(public))


def _verifying_key(found: Mapping[str, object]) -> VerifyingKey | None:
    kid, algorithms = found.get("kid"), fitting(found.get("kty"), found.get("crv"), found.get("alg"))
    operations = found.get("key_ops", ["verify"])
    is_for_signatures = (
        found.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
    )
    if not algorithms or not is_for_signatures or not (kid is None or isinstance(kid, str)):
        return None
    try:
        if found.get("kty") == "RSA" and not _is_sound_rsa(str(found.get("n"))):
            return None
        key = JWKRegistry.import_key(cast("DictKey", {name: found[name] for name in _PUBLIC if name in found}))
    except (JoseError, ValueError, TypeError):
        return None
    return VerifyingKey(kid, algorithms, key)


def _is_sound_rsa(modulus: str) -> bool:
    """Smaller ones can be broken; larger ones would make every request slow."""
    return SMALLEST_RSA_BITS <= base64_to_int(modulus).bit_length() <= LARGEST_RSA_BITS
