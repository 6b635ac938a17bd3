"""Local keys and tokens: they are accepted, private keys stay private, and no key is ever replaced."""

import json
import stat
from pathlib import Path

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from tests.support.token_issuer import Issuer
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Plan, Principal, Tenant
from toolscript.core.auth.signing import make_keys, sign_token
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import Conflict, InvalidRequest, NotFound, Unauthorized

pytestmark = pytest.mark.requirement("DOC-004")

RULES = TokenRules(Issuer.name)
ACME = Tenant("acme")


def verifier(public: Path, rules: TokenRules = RULES) -> JwtVerifier:
    return JwtVerifier(KeyRing(KeyFile(public)), rules, {"free": Plan("free")}, UNLIMITED)


async def test_a_locally_signed_token_is_accepted(tmp_path: Path) -> None:
    files = make_keys(tmp_path / "new" / "keys")
    token = sign_token(files.private, RULES, ACME, plan="free", subject="ann")
    assert await verifier(files.public).verify(token) == Principal(ACME, Plan("free"), "ann")


async def test_a_token_follows_the_rules(tmp_path: Path) -> None:
    files = make_keys(tmp_path)
    rules = TokenRules("https://me.example", "search", "org", "tier")
    token = sign_token(files.private, rules, ACME, plan="free")
    assert await verifier(files.public, rules).verify(token) == Principal(ACME, Plan("free"))
    with pytest.raises(Unauthorized, match="issued by another issuer"):
        await verifier(files.public).verify(token)


@pytest.mark.requirement("AP-005")
async def test_a_token_names_the_namespaces_that_it_sees(tmp_path: Path) -> None:
    files = make_keys(tmp_path)
    rules = TokenRules(Issuer.name, namespaces_claim="teams")
    token = sign_token(files.private, rules, ACME, namespaces=["team-a", "team-b"])
    assert (await verifier(files.public, rules).verify(token)).namespaces == {"team-a", "team-b"}
    assert (await verifier(files.public).verify(token)).namespaces == {"default"}
    with pytest.raises(InvalidRequest, match="cannot be the name of a namespace"):
        sign_token(files.private, rules, ACME, namespaces=["Team A"])


async def test_a_token_expires_after_its_hours(tmp_path: Path) -> None:
    files = make_keys(tmp_path)
    token = sign_token(files.private, RULES, ACME, hours=0.5, now=lambda: 1_000_000.0)
    with pytest.raises(Unauthorized, match="expired"):
        await verifier(files.public).verify(token)


def test_the_private_key_is_for_its_owner_alone_and_the_public_file_has_nothing_of_it(tmp_path: Path) -> None:
    files = make_keys(tmp_path)
    assert stat.S_IMODE(files.private.stat().st_mode) == 0o600
    private = json.loads(files.private.read_text())
    assert private["d"] not in files.public.read_text()
    [public] = json.loads(files.public.read_text())["keys"]
    assert public == {name: value for name, value in private.items() if name != "d"}
    assert (public["kid"], public["alg"], public["use"]) == (files.kid, "EdDSA", "sig")


@pytest.mark.parametrize("there", ["signing-key.json", "jwks.json"])
def test_an_existing_key_is_never_replaced(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(Conflict, match=there):
        make_keys(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="cannot write"):
        make_keys(tmp_path / "file" / "keys")


@pytest.mark.parametrize(("kind", "algorithm"), [(RSAKey, "RS256"), (ECKey, "ES256"), (OKPKey, "EdDSA")])
async def test_keys_made_by_others_can_sign_too(
    tmp_path: Path, kind: type[RSAKey | ECKey | OKPKey], algorithm: str
) -> None:
    key = kind.generate_key(auto_kid=True)
    (tmp_path / "key.json").write_text(json.dumps({**key.as_dict(private=True), "alg": algorithm}))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**key.as_dict(), "alg": algorithm}]}))
    token = sign_token(tmp_path / "key.json", RULES, ACME)
    assert (await verifier(tmp_path / "jwks.json").verify(token)).tenant == ACME


def test_a_file_that_cannot_sign_is_rejected_without_quoting_it(tmp_path: Path) -> None:
    public = OKPKey.generate_key().as_dict(private=False)
    secret = OctKey.generate_key().as_dict(private=True)
    other = ECKey.generate_key("P-384").as_dict(private=True)
    broken = {"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "d": "s3cret"}
    unfit: list[object] = [public, secret, other, broken, [], {"keys": []}, "text"]
    for content in unfit:
        (tmp_path / "key.json").write_text(json.dumps(content))
        with pytest.raises(InvalidRequest, match=r"key\.json is") as refused:
            sign_token(tmp_path / "key.json", RULES, ACME)
        assert "s3cret" not in str(refused.value)
        assert refused.value.__cause__ is None
    with pytest.raises(NotFound, match="No such file"):
        sign_token(tmp_path / "none.json", RULES, ACME)


@pytest.mark.parametrize("hours", [0, -1, 9000, float("nan")])
def test_the_lifetime_of_a_token_is_limited(tmp_path: Path, hours: float) -> None:
    with pytest.raises(InvalidRequest, match="hours"):
        sign_token(make_keys(tmp_path).private, RULES, ACME, hours=hours)


def test_a_token_without_an_issuer_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="issuer") as refused:
        sign_token(make_keys(tmp_path).private, TokenRules(""), ACME)
    assert "--issuer" in refused.value.hint
