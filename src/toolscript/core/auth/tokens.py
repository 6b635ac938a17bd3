"""Authentication by JSON Web Tokens: signature, claims, and a cache of tokens that were verified."""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError, MissingClaimError
from joserfc.jwt import JWTClaimsRegistry

from toolscript.core.auth.keys import FITS, HINT, MAX_TOKEN_BYTES, SIGNATURES, KeyRing, KeySet, VerifyingKey
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.errors import Unauthorized, Unavailable

# As the standard has it, and as issuers have it that came before.
SCOPE_CLAIMS = ("scope", "scp", "scopes")

MAX_TOKENS = 10_000
# A key that is taken away matters this much later at the most.
MAX_SECONDS = 60.0

TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_SHAPE = "a signed JSON Web Token has three parts with dots between them"
_KEYS = "is it signed by the issuer that is asked for, with a key that is in its key set now?"


# How far the clocks of issuer and service may be apart: those that a time server sets are apart by less.
LEEWAY_SECONDS = 30


@dataclass(frozen=True)
class TokenRules:
    """Who must have issued a token, for whom, and which claims name the tenant and its plan."""

    issuer: str
    audience: str = "toolscript"
    tenant_claim: str = "tenant_id"
    plan_claim: str = "plan"
    leeway_seconds: int = LEEWAY_SECONDS


class ClaimReader:
    """A plan that nobody knows, or none, is the default one."""

    def __init__(
        self,
        rules: TokenRules,
        plans: Mapping[str, Plan],
        default_plan: Plan,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._rules = rules
        self._plans = plans
        self._default_plan = default_plan
        self._registry = JWTClaimsRegistry(
            now=lambda: int(now()),
            leeway=rules.leeway_seconds,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "value": rules.audience},
            exp={"essential": True},
        )

    def read(self, payload: bytes) -> tuple[Principal, float]:
        """The caller, and until when the token holds."""
        claims = _claims(payload)
        try:
            self._registry.validate(claims)
        except ClaimError as error:
            raise self._refusal(error) from None
        plan = claims.get(self._rules.plan_claim)
        principal = Principal(
            tenant=self._tenant(claims),
            plan=self._plans.get(plan, self._default_plan) if isinstance(plan, str) else self._default_plan,
            subject=claims.get("sub", ""),
            scopes=_scopes(claims),
        )
        return principal, claims["exp"] + self._rules.leeway_seconds

    def _tenant(self, claims: Mapping[str, object]) -> Tenant:
        name = claims.get(self._rules.tenant_claim)
        if not isinstance(name, str):
            claim = f"its claim `{self._rules.tenant_claim}`"
            raise Unauthorized("the token names no tenant", hint=f"{claim} must be the tenant's name, a text")
        return Tenant(name)

    def _refusal(self, error: ClaimError) -> Unauthorized:
        if isinstance(error, MissingClaimError):
            return Unauthorized(f"the token lacks {error.claim}", hint="iss, aud and exp are needed")
        if isinstance(error, ExpiredTokenError):
            return Unauthorized("the token has expired", hint="get a new one from its issuer")
        claim = error.claim
        message, hint = {
            "iss": ("the token was issued by somebody else", f"its iss must be {self._rules.issuer}"),
            "aud": ("the token was issued for somebody else", f"its aud must hold {self._rules.audience}"),
            "nbf": ("the token is not valid yet", "its nbf must be a time in seconds that has come"),
            "iat": ("the token was issued in the future", "its iat must be a time in seconds that has come"),
        }.get(claim, (f"the token's {claim} cannot be understood", "times are numbers, all else is text"))
        return Unauthorized(message, hint=hint)


def _claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise Unauthorized("the token's payload is no JSON object", hint="tokens inside of tokens are not read")
    return claims


def _scopes(claims: Mapping[str, object]) -> frozenset[str] | None:
    """None where the token has no such claim. One that cannot be understood allows nothing."""
    said = [claims[name] for name in SCOPE_CLAIMS if name in claims]
    return frozenset[str]().union(*map(_words, said)) if said else None


def _words(value: object) -> frozenset[str]:
    """One text with spaces between, or a list, as issuers like it."""
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()


class TokenCache:
    def __init__(self, maximum: int = MAX_TOKENS) -> None:
        self._maximum = maximum
        self._verifier: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._verifier)

    def recall(self, digest: bytes, now: float) -> Principal | None:
        found = self._verifier.get(digest)
        if found is None:
            return None
        principal, until = found
        # A clock that was set back must not make it last longer.
        if not until - MAX_SECONDS <= now < until:
            del self._verifier[digest]
            return None
        self._verifier.move_to_end(digest)
        return principal

    def remember(self, digest: bytes, principal: Principal, now: float, expires: float) -> None:
        self._verifier[digest] = principal, min(expires, now + MAX_SECONDS)
        if len(self._verifier) > self._maximum:
            self._verifier.popitem(last=False)


class JwtVerifier:
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
        self._remembered = TokenCache()
        self._now = now

    async def verify(self, token: str) -> Principal:
        if len(token) > MAX_TOKEN_BYTES:
            raise Unauthorized(f"a token is at most {MAX_TOKEN_BYTES >> 10} KiB")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._now()
        known = self._remembered.recall(digest, now)
        if known is not None:
            return known
        signed = _parts(token)
        _require_right(signed, await self._candidates(signed))
        principal, expires = self._claims.read(signed.payload)
        self._remembered.remember(digest, principal, now, expires)
        return principal

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
        if any(jws.validate_compact(signed, key.key, registry=SIGNATURES) for key in keys):
            return
    except (JoseError, ValueError, TypeError):
        pass
    raise Unauthorized("the token's signature is not right", hint=_KEYS)
