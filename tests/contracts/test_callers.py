"""What every Callers promises: the caller of a token it knows, and a refusal for everything else."""

from pathlib import Path

import pytest

from tests.support.bad_tokens import Issuer, an_issuer, bad_tokens
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import Caller, Callers, Plan, Tenant
from toolscript.core.auth.tokens import JwtCallers, TokenRules
from toolscript.core.errors import Unauthorized
from toolscript.testing import MemoryCallers

pytestmark = pytest.mark.requirement("DOC-003", "DOC-004")

PLAN = Plan("default")
ACME, OTHER = Caller(Tenant("acme"), PLAN), Caller(Tenant("other"), PLAN, "ann", frozenset({"read"}))


@pytest.fixture(scope="module")
def tokens() -> dict[str, Caller]:
    issuer = an_issuer()
    return {issuer.token("acme"): ACME, issuer.token("other", sub="ann", scope="read"): OTHER}


@pytest.fixture(params=["memory", "jwt"])
def callers(request: pytest.FixtureRequest, tokens: dict[str, Caller], tmp_path: Path) -> Callers:
    if request.param == "memory":
        return MemoryCallers(tokens)
    keys = KeyRing(KeyFile(an_issuer().write(tmp_path / "jwks.json")))
    return JwtCallers(keys, TokenRules(Issuer.name, Issuer.audience), {}, PLAN)


async def test_each_token_has_its_caller_however_often_it_is_shown(
    callers: Callers, tokens: dict[str, Caller]
) -> None:
    for _ in range(2):
        assert [await callers.verify(token) for token in tokens] == [ACME, OTHER]


async def test_everything_else_is_refused_and_says_why(callers: Callers, tokens: dict[str, Caller]) -> None:
    for kind, token in {"nothing": "", **bad_tokens(an_issuer())}.items():
        with pytest.raises(Unauthorized) as refused:
            await callers.verify(token)
        assert refused.value.message, kind
