"""Which keys of a key set are used; no key set can do harm."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.token_issuer import Issuer, Json, ec_key, ed_key, rsa_key
from toolscript.core.auth.keys import MAX_KEYS, KeyFile, KeyRing, read_key_set
from toolscript.core.errors import Unavailable

pytestmark = pytest.mark.requirement("DOC-004")

ED, EC = ed_key("ed").jwk, ec_key("ec").jwk


def usable(*keys: object) -> list[str | None]:
    return [key.kid for key in read_key_set(json.dumps({"keys": keys}).encode()).keys]


def test_keys_of_three_kinds_are_used_each_for_its_algorithms() -> None:
    keys = read_key_set(json.dumps(Issuer().key_set()).encode()).keys
    assert {key.kid: key.algorithms for key in keys} == {
        "rsa-1": {"RS256"},
        "ec-1": {"ES256"},
        "ed-1": {"EdDSA", "Ed25519"},
    }


@pytest.mark.parametrize("left_out", ["kid", "alg", "use"])
def test_optional_fields_of_a_key_may_be_left_out(left_out: str) -> None:
    assert len(usable({name: value for name, value in ED.items() if name != left_out})) == 1


@pytest.mark.parametrize(
    "key",
    [
        pytest.param({"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"}, id="symmetric"),
        pytest.param({**ED, "d": "x"}, id="private"),
        pytest.param({**ED, "use": "enc"}, id="for encryption"),
        pytest.param({**ED, "key_ops": ["sign"]}, id="for signing alone"),
        pytest.param({**ED, "key_ops": "verify"}, id="operations that are no list"),
        pytest.param({**ED, "alg": "ES256"}, id="for an algorithm of another type"),
        pytest.param({**EC, "alg": "HS256"}, id="for a symmetric algorithm"),
        pytest.param({**ED, "alg": ["EdDSA"]}, id="algorithm that is no text"),
        pytest.param({**ED, "kid": 7}, id="name that is no text"),
        pytest.param({**ED, "crv": "Ed448"}, id="another curve"),
        pytest.param({**ED, "crv": ["Ed25519"]}, id="curve that is no text"),
        pytest.param({**EC, "crv": "P-384"}, id="curve that does not fit"),
        pytest.param({**EC, "x": EC["y"]}, id="point that is not on the curve"),
        pytest.param({**ED, "x": "!"}, id="not base64"),
        pytest.param({**ED, "x": 7}, id="coordinate that is no text"),
        pytest.param({"kty": "RSA", "n": "", "e": "AQAB"}, id="no modulus"),
        pytest.param({"kty": "RSA", "e": "AQAB"}, id="modulus left out"),
        pytest.param({"kty": "AKP", "kid": "new", "alg": "ML-DSA-44", "pub": "x"}, id="type of the future"),
        pytest.param({}, id="nothing"),
        pytest.param("key", id="no object"),
        pytest.param(None, id="null"),
    ],
)
def test_an_unusable_key_is_skipped_and_the_others_are_used(key: object) -> None:
    good = {**EC, "kid": "good"}
    assert usable(key, good) == ["good"]


def test_a_weak_rsa_key_is_skipped() -> None:
    assert usable(rsa_key("small", 1024).jwk, ED) == ["ed"]


def test_an_rsa_key_that_would_slow_down_every_request_is_skipped() -> None:
    assert usable({"kty": "RSA", "n": "_" * 3000, "e": "AQAB", "kid": "huge"}, ED) == ["ed"]


async def test_published_private_keys_are_logged_without_the_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [{**ED, "d": "s3cret-of-the-house"}, EC]}))
    key_set = await KeyRing(KeyFile(path)).keys()
    assert [key.kid for key in key_set.keys] == ["ec"]
    [warned] = caplog.records
    assert (warned.message, vars(warned)["part"]) == ("a key set contains private keys", "jwt_keys")
    assert "s3cret" not in str(vars(warned))


def test_a_key_set_has_at_most_a_hundred_keys() -> None:
    assert len(usable(*[ED] * MAX_KEYS)) == MAX_KEYS
    with pytest.raises(Unavailable, match="more than 100"):
        usable(*[ED] * (MAX_KEYS + 1))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ["kty", "crv", "x", "y", "n", "e", "alg", "use", "kid", "key_ops"]


@given(
    changes=st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4), start=st.sampled_from([ED, EC, {}])
)
def test_any_key_is_used_or_skipped(changes: Json, start: Json) -> None:
    assert set(usable({**start, **changes}, {**EC, "kid": "good"})) >= {"good"}


@given(data=st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_response_is_a_key_set_or_rejected(data: bytes) -> None:
    with suppress(Unavailable):
        assert read_key_set(data).keys == ()


def test_keys_with_one_kid_differ_by_their_algorithms() -> None:
    keys = [make("one").jwk for make in (rsa_key, ec_key, ed_key)]
    key_set = read_key_set(json.dumps({"keys": keys}).encode())
    assert [len(key_set.matching(name, "one")) for name in ("RS256", "ES256", "EdDSA", "HS256")] == [1, 1, 1, 0]
