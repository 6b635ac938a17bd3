"""Who shows this token? The port `Callers`, for JSON Web Tokens that somebody else has signed."""

import hashlib
import time
from collections.abc import Callable, Mapping

from joserfc import jws
from joserfc.errors import JoseError

from toolscript.adapters.jwt_tokens.algorithms import FITS, MOST_BYTES, SIGNATURES
from toolscript.adapters.jwt_tokens.claims import ClaimReader, TokenRules
from toolscript.adapters.jwt_tokens.key_ring import HINT, KeyRing
from toolscript.adapters.jwt_tokens.key_sets import KeySet, VerifyingKey
from toolscript.adapters.jwt_tokens.remembered import RememberedTokens
from toolscript.errors import Unauthorized, Unavailable
from toolscript.model.tenancy import Caller, Plan

TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_SHAPE = "a signed JSON Web Token has three parts with dots between them"
_KEYS = "is it signed by the issuer that is asked for, with a key that is in its key set now?"


class JwtCallers:
    """What a header says about keys (`jku`, `x5u`, `jwk`, `x5c`) is never looked at: the key set alone counts."""

    def __init__(
        self,
        keys: KeyRing,
        rules: TokenRules,
        plans: Mapping[str, Plan],
        default_plan: Plan,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._claims = ClaimReader(rules, plans, default_plan, now)
        self._remembered = RememberedTokens()
        self._now = now

    async def verify(self, token: str) -> Caller:
        if len(token) > MOST_BYTES:
            raise Unauthorized(f"a token is at most {MOST_BYTES >> 10} KiB")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._now()
        known = self._remembered.recall(digest, now)
        if known is not None:
            return known
        signed = _parts(token)
        _require_right(signed, await self._candidates(signed))
        caller, expires = self._claims.read(signed.payload)
        self._remembered.remember(digest, caller, now, expires)
        return caller

    async def _candidates(self, signed: jws.CompactSignature) -> list[VerifyingKey]:
        algorithm, kid = _header(signed)
        keys = await self._keys.keys()
        if not keys.fitting(algorithm, kid):
            keys = await self._keys.look_again()
        return _chosen(keys, algorithm, kid)


def _parts(token: str) -> jws.CompactSignature:
    parts = token.count(".") + 1
    if parts == 5:
        raise Unauthorized("this token has five parts, as encrypted ones have", hint=_SHAPE)
    try:
        return jws.extract_compact(token.encode("ascii"), registry=SIGNATURES)
    except (JoseError, ValueError, TypeError, RecursionError):
        what = "its header or payload cannot be read" if parts == 3 else f"it has {parts} parts"
        raise Unauthorized(f"this is no token: {what}", hint=_SHAPE) from None


def _header(signed: jws.CompactSignature) -> tuple[str, str | None]:
    """Which algorithm and which key the token says it was signed with."""
    header: object = signed.headers()
    if not isinstance(header, dict):
        raise Unauthorized("this is no token: its header is no object", hint=_SHAPE)
    algorithm, kid, type_ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in FITS:
        raise Unauthorized(
            "the token is signed in a way that is not accepted", hint=f"use one of {', '.join(FITS)}"
        )
    if "crit" in header:
        raise Unauthorized("the token's header has `crit`", hint="no extension of tokens is understood here")
    if not isinstance(type_, str) or type_.lower() not in TYPES:
        raise Unauthorized("the token is of another kind", hint="its header's `typ` is JWT, at+jwt, or left out")
    if not (kid is None or isinstance(kid, str)):
        raise Unauthorized("the token's `kid` is no text", hint=_KEYS)
    return algorithm, kid


def _chosen(keys: KeySet, algorithm: str, kid: str | None) -> list[VerifyingKey]:
    if not keys.keys:
        raise Unavailable("there is no key that a token could be verified with", hint=HINT)
    fitting = keys.fitting(algorithm, kid)
    if not fitting:
        raise Unauthorized("no known key can have signed the token", hint=_KEYS)
    if kid is None and len(fitting) > 1:
        raise Unauthorized("the token does not say which key signed it", hint="set `kid` in its header")
    return fitting


def _require_right(signed: jws.CompactSignature, keys: list[VerifyingKey]) -> None:
    try:
        if any(jws.validate_compact(signed, one.key, registry=SIGNATURES) for one in keys):
            return
    except (JoseError, ValueError, TypeError):
        pass
    raise Unauthorized("the token's signature is not right", hint=_KEYS)
