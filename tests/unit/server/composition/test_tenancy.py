"""Token verification, plans and rate limits from the settings."""

import json
from pathlib import Path

import pytest

from tests.support.token_issuer import Issuer, ed_key
from tests.unit.core.auth.key_set_endpoint import KeySetEndpoint
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.errors import ConfigInvalid, SetupError, Unavailable
from toolscript.core.postgres.pool import Pool
from toolscript.core.settings.service import Settings
from toolscript.server.tenancy import open_tenancy

pytestmark = pytest.mark.requirement("DOC-004", "DOC-007")

PLANS = {"plans": {"free": {"requests_per_minute": 2}, "paid": {}}}


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(ed_key("ed-1"))


def settings(keys: str = "", **other: object) -> Settings:
    return Settings.model_validate({"jwt_keys": keys, "jwt_issuer": Issuer.name, **other})


async def test_without_keys_there_is_no_verifier_and_one_plan_of_safe_limits(pool: Pool) -> None:
    async with open_tenancy(settings(), pool) as tenancy:
        assert tenancy.verifier is None
        assert tenancy.default_plan == Plan("default", requests_per_minute=6_000, concurrency=12)
        assert not tenancy.debug_bypass


async def test_tokens_plans_and_budgets_follow_the_settings(pool: Pool, issuer: Issuer, tmp_path: Path) -> None:
    (tmp_path / "plans.json").write_text(json.dumps(PLANS))
    keys = issuer.write(tmp_path / "jwks.json")
    chosen = settings(
        str(keys),
        jwt_audience="search",
        jwt_tenant_claim="org",
        jwt_plan_claim="tier",
        plans=str(tmp_path / "plans.json"),
        default_plan="free",
        environment="development",
        debug_bypass_auth=True,
    )
    async with open_tenancy(chosen, pool) as tenancy:
        assert tenancy.verifier is not None
        assert tenancy.debug_bypass
        free, paid = Plan("free", requests_per_minute=2), Plan("paid")
        assert tenancy.default_plan == free
        assert await tenancy.verifier.verify(issuer.token(None, aud="search", org="acme")) == Principal(
            Tenant("acme"), free
        )
        assert (
            await tenancy.verifier.verify(issuer.token(None, aud="search", org="acme", tier="paid"))
        ).plan == paid
        taken = [await tenancy.budget.take(Tenant("acme"), free) for _ in range(3)]
        assert [item.allowed for item in taken] == [True, True, False]
        await tenancy.tenants.seen(Tenant("acme"))
        assert [item.tenant for item in await tenancy.tenants.page("", 2)] == [Tenant("acme")]


@pytest.mark.parametrize("content", [None, "{}", '{"keys": []}'])
async def test_an_invalid_key_file_is_reported_at_startup(pool: Pool, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "jwks.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SetupError, match="key set") as refused:
        async with open_tenancy(settings(str(path)), pool):
            pass
    assert "TOOLSCRIPT_JWT_KEYS" in refused.value.hint


async def test_an_issuer_that_is_down_at_startup_can_recover(pool: Pool, issuer: Issuer) -> None:
    with KeySetEndpoint() as endpoint:
        endpoint.serve(b"", 503)
        async with open_tenancy(settings(endpoint.url), pool) as tenancy:
            assert tenancy.verifier is not None
            with pytest.raises(Unavailable, match="status 503"):
                await tenancy.verifier.verify(issuer.token())


async def test_keys_that_would_be_fetched_without_encryption_are_refused_at_the_start(pool: Pool) -> None:
    with pytest.raises(SetupError, match="https"):
        async with open_tenancy(settings("http://issuer.example/jwks"), pool):
            pass


async def test_the_default_plan_must_exist(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "plans.json").write_text(json.dumps(PLANS))
    with pytest.raises(SetupError, match="no plan `default`"):
        async with open_tenancy(settings(plans=str(tmp_path / "plans.json")), pool):
            pass
    with pytest.raises(SetupError, match="no plan `gold`"):
        async with open_tenancy(settings(default_plan="gold"), pool):
            pass
    with pytest.raises(ConfigInvalid, match="cannot read"):
        async with open_tenancy(settings(plans=str(tmp_path / "none.json")), pool):
            pass
