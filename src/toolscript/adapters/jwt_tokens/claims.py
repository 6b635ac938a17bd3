"""What a token must say, and who says it. Read only after its signature was found to be right."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.errors import ClaimError, ExpiredTokenError, MissingClaimError
from joserfc.jwt import JWTClaimsRegistry

from toolscript.errors import Unauthorized
from toolscript.model.tenancy import Caller, Plan, Tenant

# As the standard has it, and as issuers have it that came before.
SCOPE_CLAIMS = ("scope", "scp", "scopes")


@dataclass(frozen=True)
class TokenRules:
    """Who must have issued a token, for whom, and which claims name the tenant and its plan."""

    issuer: str
    audience: str = "toolscript"
    tenant_claim: str = "tenant_id"
    plan_claim: str = "plan"
    leeway_seconds: int = 30


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

    def read(self, payload: bytes) -> tuple[Caller, float]:
        """The caller, and until when the token holds."""
        claims = _claims(payload)
        try:
            self._registry.validate(claims)
        except ClaimError as error:
            raise self._refusal(error) from None
        plan = claims.get(self._rules.plan_claim)
        caller = Caller(
            tenant=self._tenant(claims),
            plan=self._plans.get(plan, self._default_plan) if isinstance(plan, str) else self._default_plan,
            subject=claims.get("sub", ""),
            scopes=_scopes(claims),
        )
        return caller, claims["exp"] + self._rules.leeway_seconds

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


def _words(given: object) -> frozenset[str]:
    """One text with spaces between, or a list, as issuers like it."""
    if isinstance(given, str):
        return frozenset(given.split())
    return frozenset(one for one in given if isinstance(one, str)) if isinstance(given, list) else frozenset()
