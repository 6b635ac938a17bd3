"""Who may ask for documents, and how much: tokens, plans and budgets, as the settings say."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from toolscript.adapters.jwt_tokens import JwtCallers, KeyFile, KeyRing, TokenRules, key_source
from toolscript.adapters.plan_files import read_plans
from toolscript.adapters.postgres import Pool, PostgresRequestBudget, PostgresTenants
from toolscript.errors import SetupError, Unavailable
from toolscript.model.tenancy import Plan
from toolscript.ports import Callers, RequestBudget, Tenants
from toolscript.settings.service import Settings

USUAL_PLAN = "default"
KEYS_HINT = "TOOLSCRIPT_JWT_KEYS names a JSON Web Key Set; `toolscript tenants keys DIR` makes one to try with"


@dataclass(frozen=True)
class Tenancy:
    """`callers` None: no keys are set, and so nobody's tokens are known."""

    callers: Callers | None
    budget: RequestBudget
    tenants: Tenants
    default_plan: Plan
    debug_bypass: bool


@asynccontextmanager
async def open_tenancy(settings: Settings, pool: Pool) -> AsyncIterator[Tenancy]:
    plans = plans_of(settings)
    default_plan = default_plan_of(settings, plans)
    async with AsyncExitStack() as stack:
        callers = await stack.enter_async_context(_callers(settings, plans, default_plan))
        budget = PostgresRequestBudget(pool)
        stack.push_async_callback(budget.close)
        yield Tenancy(callers, budget, PostgresTenants(pool), default_plan, settings.debug_bypass_auth)


def plans_of(settings: Settings) -> Mapping[str, Plan]:
    return read_plans(Path(settings.plans).expanduser()) if settings.plans else {USUAL_PLAN: Plan(USUAL_PLAN)}


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
        settings.jwt_leeway_seconds,
    )


@asynccontextmanager
async def _callers(
    settings: Settings, plans: Mapping[str, Plan], default_plan: Plan
) -> AsyncIterator[Callers | None]:
    if not settings.jwt_keys:
        yield None
        return
    source = key_source(settings.jwt_keys)
    keys = KeyRing(source)
    try:
        await _read_early(keys, is_file=isinstance(source, KeyFile))
        yield JwtCallers(keys, token_rules(settings), plans, default_plan)
    finally:
        await keys.close()


async def _read_early(keys: KeyRing, *, is_file: bool) -> None:
    """A file that is not right is a mistake; an issuer that is away can come back."""
    try:
        found = await keys.keys()
    except Unavailable as error:
        if is_file:
            raise SetupError(error.message, hint=KEYS_HINT) from None
        return
    if is_file and not found.keys:
        raise SetupError("the key set has no key that a token could be verified with", hint=KEYS_HINT)
