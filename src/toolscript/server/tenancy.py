"""Tenants from the settings: token verification, plans and rate limits."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from toolscript.core.auth.budget import PostgresRequestBudget
from toolscript.core.auth.keys import KeyFile, KeyRing, key_source
from toolscript.core.auth.model import Plan, RequestBudget, TokenVerifier
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import ConfigInvalid, SetupError, Unavailable
from toolscript.core.postgres.pool import Pool
from toolscript.core.settings.service import Settings
from toolscript.documents.ports import Tenants
from toolscript.documents.postgres import PostgresTenants

MAX_BYTES = 1024 * 1024
MAX_LIMIT = 2**53
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHAPE = 'write {"plans": {"free": {"max_top_k": 20}}}; a limit that is left out, or null, is none'
DEFAULT_PLAN = "default"
# Without a file of plans: more than a tenant sends in earnest, and less than would take the service from others.
USUAL_PLAN = Plan(DEFAULT_PLAN, requests_per_minute=6_000, concurrency=12)
KEYS_HINT = "TOOLSCRIPT_JWT_KEYS names a JSON Web Key Set; `toolscript tenants keys DIR` makes one to try with"


def read_plans(path: Path) -> Mapping[str, Plan]:
    """Return the plans by name. Raise with all problems of the file."""
    content = _read_json(path)
    if not isinstance(content, dict) or set(content) != {"plans"} or not isinstance(content["plans"], dict):
        raise ConfigInvalid(f"{path}: is not an object with `plans` and nothing else", hint=_SHAPE)
    problems = [problem for name, plan in content["plans"].items() for problem in _problems(name, plan)]
    if problems:
        raise ConfigInvalid(f"{path}: {'; '.join(problems)}", hint=_SHAPE)
    return {name: _plan(name, plan) for name, plan in content["plans"].items()}


def _read_json(path: Path) -> object:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigInvalid(f"cannot read {path}: {error.strerror}", hint="is TOOLSCRIPT_PLANS right?") from None
    if len(data) > MAX_BYTES:
        raise ConfigInvalid(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint=_SHAPE)
    try:
        return json.loads(data, object_pairs_hook=_reject_duplicates)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{path} is not JSON: {error}", hint=_SHAPE) from None


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raise for duplicate keys: it would be ambiguous which plan or limit applies."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"`{twice}` occurs twice")
    return content


def _problems(name: str, plan: object) -> list[str]:
    if not _NAME.fullmatch(name):
        return [f"plan {name[:80]!r}: a name is 1 to 64 letters, digits and ._-, the first a letter or digit"]
    if not isinstance(plan, dict):
        return [f"plan `{name}`: is not an object"]
    unknown = [f"plan `{name}`: `{field}` is not one of {', '.join(_FIELDS)}" for field in plan.keys() - _FIELDS]
    wrong = [
        f"plan `{name}`: `{field}` {_FIELDS[field][1]}"
        for field, value in plan.items()
        if field in _FIELDS and value is not None and not _FIELDS[field][0](value)
    ]
    return sorted(unknown) + wrong


def _plan(name: str, data: Mapping[str, object]) -> Plan:
    fields = data.get("metadata_fields")
    return Plan(
        name,
        max_top_k=cast("int | None", data.get("max_top_k")),
        metadata_fields=None if fields is None else frozenset(cast("list[str]", fields)),
        max_documents=cast("int | None", data.get("max_documents")),
        requests_per_minute=cast("int | None", data.get("requests_per_minute")),
        concurrency=cast("int | None", data.get("concurrency")),
    )


def _is_count(minimum: int) -> Callable[[object], bool]:
    def is_count(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAX_LIMIT

    return is_count


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name for name in value)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "max_top_k": (_is_count(1), "is not a whole number of at least 1"),
    "metadata_fields": (_are_names, "is not a list of names of fields"),
    "max_documents": (_is_count(0), "is not a whole number of at least 0"),
    "requests_per_minute": (_is_count(1), "is not a whole number of at least 1"),
    "concurrency": (_is_count(1), "is not a whole number of at least 1"),
}


@dataclass(frozen=True)
class Tenancy:
    """`verifier` is None if no keys are configured: then no token is valid."""

    verifier: TokenVerifier | None
    budget: RequestBudget
    tenants: Tenants
    default_plan: Plan
    debug_bypass: bool


@asynccontextmanager
async def open_tenancy(settings: Settings, pool: Pool) -> AsyncIterator[Tenancy]:
    plans = plans_of(settings)
    default_plan = default_plan_of(settings, plans)
    async with AsyncExitStack() as stack:
        verifier = await stack.enter_async_context(_verifier(settings, plans, default_plan))
        budget = PostgresRequestBudget(pool)
        stack.push_async_callback(budget.close)
        yield Tenancy(verifier, budget, PostgresTenants(pool), default_plan, settings.debug_bypass_auth)


def plans_of(settings: Settings) -> Mapping[str, Plan]:
    return read_plans(Path(settings.plans).expanduser()) if settings.plans else {DEFAULT_PLAN: USUAL_PLAN}


def default_plan_of(settings: Settings, plans: Mapping[str, Plan]) -> Plan:
    if settings.default_plan not in plans:
        raise SetupError(
            f"there is no plan `{settings.default_plan}`",
            hint="TOOLSCRIPT_DEFAULT_PLAN names one of those in the file of TOOLSCRIPT_PLANS",
        )
    return plans[settings.default_plan]


def token_rules(settings: Settings) -> TokenRules:
    return TokenRules(
        settings.jwt_issuer,
        settings.jwt_audience,
        settings.jwt_tenant_claim,
        settings.jwt_plan_claim,
        settings.jwt_namespaces_claim,
    )


@asynccontextmanager
async def _verifier(
    settings: Settings, plans: Mapping[str, Plan], default_plan: Plan
) -> AsyncIterator[TokenVerifier | None]:
    if not settings.jwt_keys:
        yield None
        return
    source = key_source(settings.jwt_keys)
    keys = KeyRing(source)
    try:
        await _check_keys(keys, is_file=isinstance(source, KeyFile))
        yield JwtVerifier(keys, token_rules(settings), plans, default_plan)
    finally:
        await keys.close()


async def _check_keys(keys: KeyRing, *, is_file: bool) -> None:
    """Read the keys at startup. Raise if a key file is invalid; an issuer that is down may recover."""
    try:
        key_set = await keys.keys()
    except Unavailable as error:
        if is_file:
            raise SetupError(error.message, hint=KEYS_HINT) from None
        return
    if is_file and not key_set.keys:
        raise SetupError("the key set has no key that a token could be verified with", hint=KEYS_HINT)
