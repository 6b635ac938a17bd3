"""Authentication by JSON Web Tokens: signature, claims, and a cache of verified tokens."""

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

from toolscript.core.auth.keys import HINT, KEY_TYPES, MAX_TOKEN_BYTES, SIGNATURES, KeyRing, KeySet, VerifyingKey
from toolscript.core.auth.model import Fault, Plan, Principal, Tenant
from toolscript.core.errors import TokenRefused, Unavailable
from toolscript.core.namespaces import DEFAULT_NAMESPACE, MAX_NAMESPACES, is_namespace

# The standard claim (RFC 8693), and those of older issuers.
SCOPE_CLAIMS = ("scope", "scp", "scopes")

MAX_TOKENS = 10_000
# A removed key stops verifying after at most this time.
MAX_SECONDS = 60.0

TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_SHAPE = "a signed JSON Web Token has three parts, separated by dots"
_KEYS = "is it signed by the configured issuer, with a key of its current key set?"


# Allowed clock difference between issuer and service; clocks synchronized by NTP differ by less.
LEEWAY_SECONDS = 30


@dataclass(frozen=True)
class TokenRules:
    """Required issuer and audience of a token, and the claims that name tenant, plan and namespaces."""

    issuer: str
    audience: str = "toolscript"
    tenant_claim: str = "tenant_id"
    plan_claim: str = "plan"
    namespaces_claim: str = "namespaces"
    leeway_seconds: int = LEEWAY_SECONDS


class ClaimReader:
    """Reads and validates claims. A missing or unknown plan is the default plan."""

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
        """Return the principal, and the time when the token expires."""
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
            namespaces=self._namespaces(claims),
        )
        return principal, claims["exp"] + self._rules.leeway_seconds

    def _tenant(self, claims: Mapping[str, object]) -> Tenant:
        name = claims.get(self._rules.tenant_claim)
        if not isinstance(name, str):
            claim = f"its claim `{self._rules.tenant_claim}`"
            raise TokenRefused(
                Fault.TENANT, "the token names no tenant", hint=f"{claim} must be the tenant's name, a string"
            )
        return Tenant(name)

    def _namespaces(self, claims: Mapping[str, object]) -> frozenset[str]:
        """Return the namespaces; without the claim the default one. A malformed or empty claim names none."""
        claim = self._rules.namespaces_claim
        if claim not in claims:
            return frozenset({DEFAULT_NAMESPACE})
        names = frozenset(filter(is_namespace, _names(claims[claim])))
        if len(names) > MAX_NAMESPACES:
            raise TokenRefused(
                Fault.CLAIMS,
                f"the token names more than {MAX_NAMESPACES} namespaces",
                hint=f"let its issuer put fewer into its claim `{claim}`",
            )
        return names

    def _refusal(self, error: ClaimError) -> TokenRefused:
        if isinstance(error, MissingClaimError):
            return TokenRefused(Fault.CLAIMS, f"the token lacks {error.claim}", hint="iss, aud and exp are needed")
        if isinstance(error, ExpiredTokenError):
            return TokenRefused(Fault.EXPIRED, "the token has expired", hint="get a new one from its issuer")
        claim = error.claim
        fault, message, hint = {
            "iss": (
                Fault.ISSUER,
                "the token was issued by another issuer",
                f"its iss must be {self._rules.issuer}",
            ),
            "aud": (
                Fault.AUDIENCE,
                "the token was issued for another audience",
                f"its aud must contain {self._rules.audience}",
            ),
            "nbf": (
                Fault.TOO_EARLY,
                "the token is not valid yet",
                "its nbf must be a time in seconds in the past",
            ),
            "iat": (
                Fault.TOO_EARLY,
                "the token was issued in the future",
                "its iat must be a time in seconds in the past",
            ),
        }.get(
            claim,
            (
                Fault.CLAIMS,
                f"the token's {claim} cannot be understood",
                "times must be numbers, other claims strings",
            ),
        )
        return TokenRefused(fault, message, hint=hint)


def _claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise TokenRefused(
            Fault.SHAPE, "the token's payload is not a JSON object", hint="nested tokens are not supported"
        )
    return claims


def _scopes(claims: Mapping[str, object]) -> frozenset[str] | None:
    """Return the scopes; None without such a claim. A malformed claim allows nothing."""
    values = [claims[name] for name in SCOPE_CLAIMS if name in claims]
    return frozenset[str]().union(*map(_names, values)) if values else None


def _names(value: object) -> frozenset[str]:
    """Return the names in a claim: a string separated by spaces, or a list, depending on the issuer."""
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()


class TokenCache:
    def __init__(self, maximum: int = MAX_TOKENS) -> None:
        self._maximum = maximum
        self._verifier: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._verifier)

    def get(self, digest: bytes, now: float) -> Principal | None:
        entry = self._verifier.get(digest)
        if entry is None:
            return None
        principal, until = entry
        # A clock that is set back must not extend the lifetime.
        if not until - MAX_SECONDS <= now < until:
            del self._verifier[digest]
            return None
        self._verifier.move_to_end(digest)
        return principal

    def put(self, digest: bytes, principal: Principal, now: float, expires: float) -> None:
        self._verifier[digest] = principal, min(expires, now + MAX_SECONDS)
        if len(self._verifier) > self._maximum:
            self._verifier.popitem(last=False)


class JwtVerifier:
    """Verifies JWTs with the key set only; key headers of a token (`jku`, `x5u`, `jwk`, `x5c`) are ignored."""

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
        self._cache = TokenCache()
        self._now = now

    async def verify(self, token: str) -> Principal:
        if len(token) > MAX_TOKEN_BYTES:
            raise TokenRefused(Fault.SHAPE, f"a token is at most {MAX_TOKEN_BYTES >> 10} KiB")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._now()
        cached = self._cache.get(digest, now)
        if cached is not None:
            return cached
        signed = _parse(token)
        _require_valid_signature(signed, await self._candidates(signed))
        principal, expires = self._claims.read(signed.payload)
        self._cache.put(digest, principal, now, expires)
        return principal

    async def _candidates(self, signed: jws.CompactSignature) -> list[VerifyingKey]:
        algorithm, kid = _header(signed)
        keys = await self._keys.keys()
        if not keys.matching(algorithm, kid):
            keys = await self._keys.refresh()
        return _select_keys(keys, algorithm, kid)


def _parse(token: str) -> jws.CompactSignature:
    parts = token.count(".") + 1
    if parts == 5:
        raise TokenRefused(Fault.SHAPE, "this token has five parts, as encrypted ones have", hint=_SHAPE)
    try:
        return jws.extract_compact(token.encode("ascii"), registry=SIGNATURES)
    except (JoseError, ValueError, TypeError, RecursionError):
        problem = "its header or payload cannot be read" if parts == 3 else "it does not have three parts"
        raise TokenRefused(Fault.SHAPE, f"this is not a JSON Web Token: {problem}", hint=_SHAPE) from None


def _header(signed: jws.CompactSignature) -> tuple[str, str | None]:
    """Return the algorithm and the key id of the token's header."""
    header: object = signed.headers()
    if not isinstance(header, dict):
        raise TokenRefused(Fault.SHAPE, "this is not a JSON Web Token: its header is not an object", hint=_SHAPE)
    algorithm, kid, type_ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
        raise TokenRefused(
            Fault.ALGORITHM,
            "the token is signed in a way that is not accepted",
            hint=f"use one of {', '.join(KEY_TYPES)}",
        )
    if "crit" in header:
        raise TokenRefused(Fault.SHAPE, "the token's header has `crit`", hint="token extensions are not supported")
    if not isinstance(type_, str) or type_.lower() not in TYPES:
        raise TokenRefused(
            Fault.SHAPE, "the token is of another kind", hint="its header's `typ` is JWT, at+jwt, or left out"
        )
    if not (kid is None or isinstance(kid, str)):
        raise TokenRefused(Fault.KEY, "the token's `kid` is not a string", hint=_KEYS)
    return algorithm, kid


def _select_keys(keys: KeySet, algorithm: str, kid: str | None) -> list[VerifyingKey]:
    if not keys.keys:
        raise Unavailable("there is no key to verify tokens with", hint=HINT)
    matching = keys.matching(algorithm, kid)
    if not matching:
        raise TokenRefused(Fault.KEY, "no known key can have signed the token", hint=_KEYS)
    if kid is None and len(matching) > 1:
        raise TokenRefused(Fault.KEY, "the token does not say which key signed it", hint="set `kid` in its header")
    return matching


def _require_valid_signature(signed: jws.CompactSignature, keys: list[VerifyingKey]) -> None:
    try:
        if any(jws.validate_compact(signed, key.key, registry=SIGNATURES) for key in keys):
            return
    except (JoseError, ValueError, TypeError):
        pass
    raise TokenRefused(Fault.SIGNATURE, "the token's signature is not valid", hint=_KEYS)
