"""Tokens that must be refused, each one step away from a right one, and right ones in the wrong place.

`bad_tokens(issuer)` are for `Authorization: Bearer`; `misplaced_tokens(issuer)` are right and shown elsewhere.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.support.token_issuer import Issuer, Sign, an_issuer, b64, compact, ec_key, ed_key

__all__ = ["KINDS", "Issuer", "Shown", "an_issuer", "bad_requests", "bad_tokens", "misplaced_tokens"]

HOUR = 3600


def _with_secret(secret: bytes) -> Sign:
    return lambda data: hmac.new(secret, data, hashlib.sha256).digest()


def _unsigned(_: bytes) -> bytes:
    return b""


def _by(issuer: Issuer, header: Mapping[str, object], kid: str = "ed-1") -> str:
    """Rightly signed, with another header."""
    key = issuer.keys[kid]
    return compact({"alg": key.algorithm, "kid": kid, **header}, issuer.claims(), key.sign)


def _by_stranger(issuer: Issuer, header: Mapping[str, object]) -> str:
    """Signed with a key of the stranger's own, which the header may advertise."""
    stranger = ed_key("ed-1")
    return compact({"alg": "EdDSA", **header, "jwk": stranger.jwk}, issuer.claims(), stranger.sign)


def _changed_payload(issuer: Issuer) -> str:
    header, payload, signature = issuer.token("acme").split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return f"{header}.{b64(json.dumps({**claims, 'tenant_id': 'other'}).encode())}.{signature}"


def _changed_header(issuer: Issuer) -> str:
    _, payload, signature = issuer.token(kid="ed-1").split(".")
    return f"{b64(json.dumps({'alg': 'EdDSA', 'kid': 'ed-1', 'more': 1}).encode())}.{payload}.{signature}"


def _changed_signature(issuer: Issuer) -> str:
    header, payload, signature = issuer.token().split(".")
    return f"{header}.{payload}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"


def _unencoded(issuer: Issuer) -> str:
    """A payload that is signed as it stands, which a `crit` header can ask for."""
    key = issuer.keys["ed-1"]
    header = b64(json.dumps({"alg": "EdDSA", "kid": "ed-1", "b64": False, "crit": ["b64"]}).encode())
    body = b64(json.dumps(issuer.claims()).encode())
    return f"{header}.{body}.{b64(key.sign(f'{header}.{body}'.encode()))}"


def _past(issuer: Issuer, seconds: int) -> int:
    return int(issuer.claims()["iat"]) - seconds


def _secretly(issuer: Issuer, kid: str, secret: bytes) -> str:
    return compact({"alg": "HS256", "kid": kid}, issuer.claims(), _with_secret(secret))


def _public_text(issuer: Issuer, kid: str) -> bytes:
    return json.dumps(issuer.keys[kid].jwk).encode()


KINDS: Mapping[str, Callable[[Issuer], str]] = {
    "algorithm none": lambda one: compact({"alg": "none", "kid": "rsa-1"}, one.claims(), _unsigned),
    "algorithm nOnE": lambda one: compact({"alg": "nOnE"}, one.claims(), _unsigned),
    "algorithm none with a signature": lambda one: _by(one, {"alg": "none"}),
    "no algorithm": lambda one: compact({"kid": "ed-1"}, one.claims(), one.keys["ed-1"].sign),
    "algorithm is a list": lambda one: _by(one, {"alg": ["EdDSA"]}),
    "HS256 with the public key as the secret": lambda one: _secretly(one, "rsa-1", one.keys["rsa-1"].pem),
    "HS256 with the key set's text as the secret": lambda one: _secretly(one, "rsa-1", _public_text(one, "rsa-1")),
    "HS256 with an empty secret": lambda one: _secretly(one, "ed-1", b""),
    "another key under a known name": lambda one: compact(
        {"alg": "ES256", "kid": "ec-1"}, one.claims(), ec_key("ec-1").sign
    ),
    "unknown key": lambda one: compact({"alg": "EdDSA", "kid": "ed-9"}, one.claims(), ed_key("ed-9").sign),
    "known key under an unknown name": lambda one: _by(one, {"kid": "ed-9"}),
    "name of the key is a number": lambda one: _by(one, {"kid": 7}),
    "expired": lambda one: one.token(exp=_past(one, HOUR)),
    "no expiry": lambda one: one.token(exp=None),
    "expiry is text": lambda one: one.token(exp="2099-01-01"),
    "expiry is not a number": lambda one: one.token(exp=float("nan")),
    "expiry is true": lambda one: one.token(exp=True),
    "not valid yet": lambda one: one.token(nbf=_past(one, -HOUR)),
    "issued in the future": lambda one: one.token(iat=_past(one, -HOUR)),
    "another issuer": lambda one: one.token(iss="https://issuer.example.evil"),
    "issuer in a list": lambda one: one.token(iss=[one.name]),
    "no issuer": lambda one: one.token(iss=None),
    "another audience": lambda one: one.token(aud=["toolscript2", "others"]),
    "no audience": lambda one: one.token(aud=None),
    "no tenant": lambda one: one.token(None),
    "tenant is a number": lambda one: one.token(7),
    "tenant is a list": lambda one: one.token(["acme"]),
    "tenant is empty": lambda one: one.token(""),
    "tenant with a path in it": lambda one: one.token("acme/../other"),
    "tenant with a line break": lambda one: one.token("acme\n"),
    "tenant that is too long": lambda one: one.token("a" * 129),
    "payload was changed": _changed_payload,
    "header was changed": _changed_header,
    "signature was changed": _changed_signature,
    "no signature": lambda one: one.token().rpartition(".")[0] + ".",
    "truncated": lambda one: one.token()[:-9],
    "two parts": lambda one: one.token().rpartition(".")[0],
    "not a token": lambda one: "s3cret-of-the-house",
    "nothing but dots": lambda one: "..",
    "encrypted": lambda one: ".".join([b64(b'{"alg":"RSA-OAEP","enc":"A256GCM"}'), *(b64(b"x" * 16),) * 4]),
    "token in a token": lambda one: compact(
        {"alg": "EdDSA", "kid": "ed-1", "cty": "JWT"}, one.token().encode(), one.keys["ed-1"].sign
    ),
    "critical extension": lambda one: _by(one, {"crit": ["exp"], "exp": 1}),
    "payload that is not encoded": _unencoded,
    "key in the header": lambda one: _by_stranger(one, {}),
    "key in the header under a known name": lambda one: _by_stranger(one, {"kid": "ed-1"}),
    "address of a key set in the header": lambda one: _by_stranger(
        one, {"kid": "ed-1", "jku": "https://evil.example/jwks.json", "x5u": "https://evil.example/cert.pem"}
    ),
    "ES256 signature under an RS256 header": lambda one: compact(
        {"alg": "RS256", "kid": "rsa-1"}, one.claims(), one.keys["ec-1"].sign
    ),
    "algorithm of another key's type": lambda one: _by(one, {"alg": "RS256"}, "ec-1"),
    "algorithm that is not accepted": lambda one: _by(one, {"alg": "RS512"}, "rsa-1"),
    "token of another kind": lambda one: _by(one, {"typ": "dpop+jwt"}),
    "payload is a list": lambda one: compact({"alg": "EdDSA", "kid": "ed-1"}, ["acme"], one.keys["ed-1"].sign),
    "payload nested without end": lambda one: compact(
        {"alg": "EdDSA", "kid": "ed-1"}, b"[" * 5000, one.keys["ed-1"].sign
    ),
    "header is a text": lambda one: compact("alg b64", one.claims(), one.keys["ed-1"].sign),
    "header is a list": lambda one: compact(["alg", "b64"], one.claims(), one.keys["ed-1"].sign),
    "too long": lambda one: one.token(more="x" * 9000),
    "two tokens": lambda one: f"{one.token()},{one.token()}",
    "letters of no alphabet": lambda one: one.token()[:-4] + "\xff\xfe\xfd\xfc",
}


@dataclass(frozen=True)
class Shown:
    """What a request carries."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    params: Mapping[str, str] = field(default_factory=dict)


def bad_tokens(issuer: Issuer) -> dict[str, str]:
    return {kind: make(issuer) for kind, make in KINDS.items()}


def misplaced_tokens(issuer: Issuer) -> dict[str, Shown]:
    good = issuer.token()
    return {
        "no token": Shown(),
        "in the query": Shown(params={"access_token": good, "token": good, "authorization": f"Bearer {good}"}),
        "in a cookie": Shown([("Cookie", f"access_token={good}; Authorization=Bearer {good}")]),
        "in another header": Shown(
            [("X-Authorization", f"Bearer {good}"), ("Proxy-Authorization", f"Bearer {good}")]
        ),
        "without a kind": Shown([("Authorization", good)]),
        "as another kind": Shown([("Authorization", f"Basic {good}")]),
        "with a kind alone": Shown([("Authorization", "Bearer ")]),
        "in two headers": Shown([("Authorization", f"Bearer {good}")] * 2),
        "beside a bad one": Shown([("Authorization", f"Bearer {good}"), ("Authorization", "Bearer x")]),
        "in one header twice": Shown([("Authorization", f"Bearer {good}, Bearer {good}")]),
        "as a tenant's name": Shown(
            [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "acme"), ("X-Tenant-Id", "acme")]
        ),
    }


def bad_requests(issuer: Issuer) -> dict[str, Shown]:
    """All of both, for trying on routes. Without a setting that allows it, the debug headers are among them."""
    shown = {kind: Shown([("Authorization", f"Bearer {token}")]) for kind, token in bad_tokens(issuer).items()}
    return shown | misplaced_tokens(issuer)
