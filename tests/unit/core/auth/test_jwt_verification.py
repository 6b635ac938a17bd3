"""Which tokens are accepted, their claims, and the reasons to reject all others."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bad_tokens import KINDS, Issuer, an_issuer
from tests.support.token_issuer import Json, compact, ec_key, ed_key, rsa_key
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import Plan, Principal, Scope, Tenant
from toolscript.core.auth.tokens import JwtVerifier, TokenCache, TokenRules
from toolscript.core.errors import Unauthorized, Unavailable

pytestmark = pytest.mark.requirement("DOC-004")

FREE, PAID = Plan("free", max_top_k=5), Plan("paid")
RULES = TokenRules(Issuer.name, Issuer.audience)

WAY = "signed in a way that is not accepted"
NO_TOKEN = "this is not a JSON Web Token"
FIVE = "five parts"
NO_KEY = "no known key can have signed"
WRONG = "signature is not valid"
NO_TENANT = "names no tenant"
NAME = "the tenant's name is not valid"
UNREADABLE = "cannot be understood"
NO_OBJECT = "payload is not a JSON object"
REASONS = {
    "algorithm none": WAY,
    "algorithm nOnE": WAY,
    "algorithm none with a signature": WAY,
    "no algorithm": NO_TOKEN,
    "algorithm is a list": WAY,
    "HS256 with the public key as the secret": WAY,
    "HS256 with the key set's text as the secret": WAY,
    "HS256 with an empty secret": WAY,
    "another key under a known name": WRONG,
    "unknown key": NO_KEY,
    "known key under an unknown name": NO_KEY,
    "name of the key is a number": "`kid` is not a string",
    "expired": "has expired",
    "no expiry": "lacks exp",
    "expiry is text": UNREADABLE,
    "expiry is not a number": UNREADABLE,
    "expiry is true": UNREADABLE,
    "not valid yet": "not valid yet",
    "issued in the future": "issued in the future",
    "another issuer": "issued by another issuer",
    "issuer in a list": "issued by another issuer",
    "no issuer": "lacks iss",
    "another audience": "issued for another audience",
    "no audience": "lacks aud",
    "no tenant": NO_TENANT,
    "tenant is a number": NO_TENANT,
    "tenant is a list": NO_TENANT,
    "tenant is empty": NAME,
    "tenant with a path in it": NAME,
    "tenant with a line break": NAME,
    "tenant that is too long": NAME,
    "payload was changed": WRONG,
    "header was changed": WRONG,
    "signature was changed": WRONG,
    "no signature": WRONG,
    "truncated": WRONG,
    "two parts": NO_TOKEN,
    "not a token": NO_TOKEN,
    "nothing but dots": NO_TOKEN,
    "encrypted": FIVE,
    "token in a token": NO_OBJECT,
    "critical extension": "`crit`",
    "payload that is not encoded": "`crit`",
    "key in the header": WRONG,
    "key in the header under a known name": WRONG,
    "address of a key set in the header": WRONG,
    "ES256 signature under an RS256 header": WRONG,
    "algorithm of another key's type": NO_KEY,
    "algorithm that is not accepted": WAY,
    "token of another kind": "of another kind",
    "payload is a list": NO_OBJECT,
    "payload nested without end": NO_OBJECT,
    "header is a text": NO_TOKEN,
    "header is a list": NO_TOKEN,
    "too long": "at most 8 KiB",
    "two tokens": FIVE,
    "letters of no alphabet": NO_TOKEN,
}


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


def verifier(path: Path, clock: Clock | None = None, rules: TokenRules = RULES) -> JwtVerifier:
    ring = KeyRing(KeyFile(path), **({"now": clock} if clock else {}))
    return JwtVerifier(ring, rules, {"free": FREE, "paid": PAID}, FREE, **({"now": clock} if clock else {}))


@pytest.fixture
def issuer() -> Issuer:
    return an_issuer()


@pytest.fixture
def jwt_verifier(issuer: Issuer, tmp_path: Path) -> JwtVerifier:
    return verifier(issuer.write(tmp_path / "jwks.json"))


@pytest.mark.parametrize("kid", ["rsa-1", "ec-1", "ed-1"])
async def test_a_token_of_each_accepted_algorithm_is_verified(
    jwt_verifier: JwtVerifier, issuer: Issuer, kid: str
) -> None:
    assert await jwt_verifier.verify(issuer.token("acme", kid=kid)) == Principal(Tenant("acme"), FREE)


async def test_the_new_name_of_eddsa_is_accepted_too(jwt_verifier: JwtVerifier, issuer: Issuer) -> None:
    assert (await jwt_verifier.verify(issuer.token("acme", header={"alg": "Ed25519"}))).tenant == Tenant("acme")


async def test_plan_subject_and_scopes_are_read(jwt_verifier: JwtVerifier, issuer: Issuer) -> None:
    token = issuer.token(plan="paid", sub="ann", scope="read write", scp=["write", "admin", 7])
    principal = await jwt_verifier.verify(token)
    assert principal == Principal(Tenant("acme"), PAID, "ann", frozenset({"read", "write", "admin"}))


@pytest.mark.requirement("KN-005")
async def test_a_missing_scope_claim_differs_from_an_empty_one(jwt_verifier: JwtVerifier, issuer: Issuer) -> None:
    claim_sets: list[Any] = [{}, {"scope": ""}, {"scope": 7}, {"scopes": ["a", None], "scp": "b"}]
    read = [(await jwt_verifier.verify(issuer.token(**claims))).scopes for claims in claim_sets]
    assert read == [None, frozenset(), frozenset(), frozenset({"a", "b"})]


@pytest.mark.requirement("AP-005")
async def test_namespaces_are_read_as_scopes_are(jwt_verifier: JwtVerifier, issuer: Issuer) -> None:
    claims: list[Any] = ["a b", ["a", "b"], ["a", "Not A Name", 7, "-b", "b" * 64], "", [], 7, {"a": 1}]
    read = [(await jwt_verifier.verify(issuer.token(namespaces=claim))).namespaces for claim in claims]
    nothing: frozenset[str] = frozenset()
    assert read == [{"a", "b"}, {"a", "b"}, {"a"}, nothing, nothing, nothing, nothing]
    assert (await jwt_verifier.verify(issuer.token())).namespaces == {"default"}
    with pytest.raises(Unauthorized, match="more than 32 namespaces"):
        await jwt_verifier.verify(issuer.token(namespaces=[str(number) for number in range(33)]))


@pytest.mark.requirement("AP-005")
async def test_only_a_token_that_names_it_may_manage_tools(jwt_verifier: JwtVerifier, issuer: Issuer) -> None:
    scopes = [None, "tools:read", "tools:read tools:manage"]
    read = [await jwt_verifier.verify(issuer.token(scope=scope)) for scope in scopes]
    assert [principal.may(Scope.TOOLS_READ) for principal in read] == [True, True, True]
    assert [principal.may(Scope.TOOLS_MANAGE) for principal in read] == [False, False, True]


@pytest.mark.parametrize("plan", ["gold", "", 7, ["paid"]])
async def test_an_unknown_plan_is_the_default_one(jwt_verifier: JwtVerifier, issuer: Issuer, plan: object) -> None:
    assert (await jwt_verifier.verify(issuer.token(plan=plan))).plan == FREE


async def test_the_names_of_claims_are_configurable(issuer: Issuer, tmp_path: Path) -> None:
    rules = TokenRules(Issuer.name, "search", "https://example.com/org", "tier")
    jwt_verifier = verifier(issuer.write(tmp_path / "jwks.json"), rules=rules)
    claims: Json = {"aud": ["web", "search"], "tier": "paid", "https://example.com/org": "acme"}
    token = issuer.token(None, **claims)
    assert await jwt_verifier.verify(token) == Principal(Tenant("acme"), PAID)


@pytest.mark.parametrize("header", [{"typ": None}, {"typ": "at+jwt"}, {"nonce": "x", "ver": 2}])
async def test_harmless_headers_are_accepted(
    jwt_verifier: JwtVerifier, issuer: Issuer, header: dict[str, object]
) -> None:
    key = issuer.keys["ed-1"]
    full = {"alg": "EdDSA", "kid": "ed-1", "typ": "JWT", **header}
    token = compact({name: value for name, value in full.items() if value is not None}, issuer.claims(), key.sign)
    assert (await jwt_verifier.verify(token)).tenant == Tenant("acme")


def test_a_reason_is_given_for_every_kind_and_there_are_many() -> None:
    assert REASONS.keys() == KINDS.keys()
    assert len(KINDS) >= 13


@pytest.mark.parametrize("kind", KINDS)
async def test_a_bad_token_is_rejected_with_its_reason(
    jwt_verifier: JwtVerifier, issuer: Issuer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = KINDS[kind](issuer)
    # Valid tokens before and after: a bad token does not affect others.
    await jwt_verifier.verify(issuer.token())
    for _ in range(2):
        with pytest.raises(Unauthorized, match=REASONS[kind]) as refused:
            await jwt_verifier.verify(token)
        output = f"{refused.value.message} {refused.value.hint} {refused.value.details} {caplog.text}"
        assert [part for part in re.findall(r"[\w-]{12,}", token) if part in output] == []
    await jwt_verifier.verify(issuer.token())


@pytest.mark.parametrize("kid", ["rsa-1", "ec-1", "ed-1"])
async def test_a_token_with_one_changed_letter_is_rejected(
    jwt_verifier: JwtVerifier, issuer: Issuer, kid: str
) -> None:
    token = issuer.token(kid=kid)
    await jwt_verifier.verify(token)
    for position, letter in enumerate(token):
        with pytest.raises(Unauthorized):
            await jwt_verifier.verify(token[:position] + ("B" if letter == "A" else "A") + token[position + 1 :])


@given(text=st.text() | st.text("abcAB09._-=", max_size=60))
async def test_any_other_text_is_rejected(text: str) -> None:
    with pytest.raises(Unauthorized):
        await JwtVerifier(KeyRing(_Nowhere()), RULES, {}, FREE).verify(text)


class _Nowhere:
    """Fails the test if a key is read: no text gets that far."""

    fresh_seconds = grace_seconds = pause_seconds = 0.0

    async def read(self) -> bytes:
        raise AssertionError


async def test_clocks_may_be_apart_by_the_leeway_and_no_further(tmp_path: Path) -> None:
    clock = Clock()
    issuer = Issuer(ed_key("ed-1"), now=clock)
    jwt_verifier = verifier(issuer.write(tmp_path / "jwks.json"), clock)
    now = int(clock.at)
    within: list[Json] = [{"exp": now - 29}, {"nbf": now + 30}, {"iat": now + 30}]
    beyond: list[Json] = [{"exp": now - 30}, {"nbf": now + 31}, {"iat": now + 31}]
    for claims in within:
        assert (await jwt_verifier.verify(issuer.token(**claims))).tenant == Tenant("acme")
    for claims in beyond:
        with pytest.raises(Unauthorized):
            await jwt_verifier.verify(issuer.token(**claims))


async def test_a_token_without_kid_needs_exactly_one_matching_key(tmp_path: Path) -> None:
    issuer = Issuer(ed_key("ed-1"), ec_key("ec-1"), ec_key("ec-2"))
    jwt_verifier = verifier(issuer.write(tmp_path / "jwks.json"))
    nameless = [token_without_kid(issuer, kid) for kid in ("ed-1", "ec-1")]
    assert (await jwt_verifier.verify(nameless[0])).tenant == Tenant("acme")
    with pytest.raises(Unauthorized, match="does not say which key"):
        await jwt_verifier.verify(nameless[1])


def token_without_kid(issuer: Issuer, kid: str) -> str:
    key = issuer.keys[kid]
    return compact({"alg": key.algorithm}, issuer.claims(), key.sign)


async def test_a_key_set_without_usable_keys_is_unavailable_not_unauthorized(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text('{"keys": []}')
    with pytest.raises(Unavailable, match="no key"):
        await verifier(path).verify(an_issuer().token())


async def test_a_cached_token_needs_no_keys_and_ends_with_its_expiry(tmp_path: Path) -> None:
    clock = Clock()
    issuer = Issuer(ed_key("ed-1"), now=clock)
    path = issuer.write(tmp_path / "jwks.json")
    jwt_verifier = verifier(path, clock)
    token = issuer.token(exp=int(clock.at) + 10)
    await jwt_verifier.verify(token)
    path.unlink()
    clock.at += 39
    assert (await jwt_verifier.verify(token)).tenant == Tenant("acme")
    clock.at += 1
    with pytest.raises(Unauthorized, match="expired"):
        await jwt_verifier.verify(token)


async def test_a_removed_key_stops_verifying_within_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    issuer = Issuer(ed_key("ed-1"), ed_key("ed-2"), now=clock)
    path = issuer.write(tmp_path / "jwks.json")
    jwt_verifier = verifier(path, clock)
    token = issuer.token(kid="ed-1")
    await jwt_verifier.verify(token)
    del issuer.keys["ed-1"]
    issuer.write(path)
    clock.at += 59
    await jwt_verifier.verify(token)
    clock.at += 1
    with pytest.raises(Unauthorized, match=NO_KEY):
        await jwt_verifier.verify(token)


def test_the_token_cache_is_an_lru_of_limited_size() -> None:
    cache = TokenCache(maximum=2)
    principal = Principal(Tenant("acme"))
    for digest in (b"1", b"2"):
        cache.put(digest, principal, 0, 100)
    assert cache.get(b"1", 1) == principal
    cache.put(b"3", principal, 2, 100)
    assert [cache.get(digest, 3) for digest in (b"1", b"2", b"3")] == [principal, None, principal]
    assert len(cache) == 2


async def test_a_new_key_in_the_file_is_found_at_once(tmp_path: Path) -> None:
    issuer = Issuer(ed_key("ed-1"))
    path = issuer.write(tmp_path / "jwks.json")
    jwt_verifier = verifier(path)
    await jwt_verifier.verify(issuer.token(kid="ed-1"))
    issuer.keys["rsa-2"] = rsa_key("rsa-2")
    issuer.write(path)
    assert (await jwt_verifier.verify(issuer.token(kid="rsa-2"))).tenant == Tenant("acme")
