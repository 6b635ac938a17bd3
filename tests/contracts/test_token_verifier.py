"""Contract of TokenVerifier: the principal of a valid token, and an error for any other."""

from pathlib import Path

import pytest

from tests.doubles import MemoryTokenVerifier
from tests.support.bad_tokens import Issuer, an_issuer, bad_tokens
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import Plan, Principal, Tenant, TokenVerifier
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import Unauthorized

pytestmark = pytest.mark.requirement("DOC-003", "DOC-004")

PLAN = Plan("default")
ACME, OTHER = Principal(Tenant("acme"), PLAN), Principal(Tenant("other"), PLAN, "ann", frozenset({"read"}))


@pytest.fixture(scope="module")
def tokens() -> dict[str, Principal]:
    issuer = an_issuer()
    return {issuer.token("acme"): ACME, issuer.token("other", sub="ann", scope="read"): OTHER}


@pytest.fixture(params=["memory", "jwt"])
def verifier(request: pytest.FixtureRequest, tokens: dict[str, Principal], tmp_path: Path) -> TokenVerifier:
    if request.param == "memory":
        return MemoryTokenVerifier(tokens)
    keys = KeyRing(KeyFile(an_issuer().write(tmp_path / "jwks.json")))
    return JwtVerifier(keys, TokenRules(Issuer.name, Issuer.audience), {}, PLAN)


async def test_each_valid_token_resolves_to_its_principal_every_time(
    verifier: TokenVerifier, tokens: dict[str, Principal]
) -> None:
    for _ in range(2):
        assert [await verifier.verify(token) for token in tokens] == [ACME, OTHER]


async def test_every_other_token_is_refused_with_a_reason(
    verifier: TokenVerifier, tokens: dict[str, Principal]
) -> None:
    for kind, token in {"nothing": "", **bad_tokens(an_issuer())}.items():
        with pytest.raises(Unauthorized) as refused:
            await verifier.verify(token)
        assert refused.value.message, kind
