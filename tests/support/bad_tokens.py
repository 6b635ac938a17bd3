"""Tokens that must be refused, each one step away from a valid one, and valid ones in the wrong place.

`bad_tokens(issuer)` are for `Authorization: Bearer`; `misplaced_tokens(issuer)` are valid but sent elsewhere.
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
    """Return a correctly signed token with another header."""
    key = issuer.keys[kid]
    return compact({"alg": key.algorithm, "kid": kid, **header}, issuer.claims(), key.sign)


def _by_stranger(issuer: Issuer, header: Mapping[str, object]) -> str:
    """Return a token signed with a foreign key, which the header may advertise."""
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
    """Return a token with an unencoded payload, as a `crit` header can request."""
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
    "algorithm none": lambda item: compact({"alg": "none", "kid": "rsa-1"}, item.claims(), _unsigned),
    "algorithm nOnE": lambda item: compact({"alg": "nOnE"}, item.claims(), _unsigned),
    "algorithm none with a signature": lambda item: _by(item, {"alg": "none"}),
    "no algorithm": lambda item: compact({"kid": "ed-1"}, item.claims(), item.keys["ed-1"].sign),
    "algorithm is a list": lambda item: _by(item, {"alg": ["EdDSA"]}),
    "HS256 with the public key as the secret": lambda item: _secretly(item, "rsa-1", item.keys["rsa-1"].pem),
    "HS256 with the key set's text as the secret": lambda item: _secretly(
        item, "rsa-1", _public_text(item, "rsa-1")
    ),
    "HS256 with an empty secret": lambda item: _secretly(item, "ed-1", b""),
    "another key under a known name": lambda item: compact(
        {"alg": "ES256", "kid": "ec-1"}, item.claims(), ec_key("ec-1").sign
    ),
    "unknown key": lambda item: compact({"alg": "EdDSA", "kid": "ed-9"}, item.claims(), ed_key("ed-9").sign),
    "known key under an unknown name": lambda item: _by(item, {"kid": "ed-9"}),
    "name of the key is a number": lambda item: _by(item, {"kid": 7}),
    "expired": lambda item: item.token(exp=_past(item, HOUR)),
    "no expiry": lambda item: item.token(exp=None),
    "expiry is text": lambda item: item.token(exp="2099-01-01"),
    "expiry is not a number": lambda item: item.token(exp=float("nan")),
    "expiry is true": lambda item: item.token(exp=True),
    "not valid yet": lambda item: item.token(nbf=_past(item, -HOUR)),
    "issued in the future": lambda item: item.token(iat=_past(item, -HOUR)),
    "another issuer": lambda item: item.token(iss="https://issuer.example.evil"),
    "issuer in a list": lambda item: item.token(iss=[item.name]),
    "no issuer": lambda item: item.token(iss=None),
    "another audience": lambda item: item.token(aud=["toolscript2", "others"]),
    "no audience": lambda item: item.token(aud=None),
    "no tenant": lambda item: item.token(None),
    "tenant is a number": lambda item: item.token(7),
    "tenant is a list": lambda item: item.token(["acme"]),
    "tenant is empty": lambda item: item.token(""),
    "tenant with a path in it": lambda item: item.token("acme/../other"),
    "tenant with a line break": lambda item: item.token("acme\n"),
    "tenant that is too long": lambda item: item.token("a" * 129),
    "payload was changed": _changed_payload,
    "header was changed": _changed_header,
    "signature was changed": _changed_signature,
    "no signature": lambda item: item.token().rpartition(".")[0] + ".",
    "truncated": lambda item: item.token()[:-9],
    "two parts": lambda item: item.token().rpartition(".")[0],
    "not a token": lambda item: "s3cret-of-the-house",
    "nothing but dots": lambda item: "..",
    "encrypted": lambda item: ".".join([b64(b'{"alg":"RSA-OAEP","enc":"A256GCM"}'), *(b64(b"x" * 16),) * 4]),
    "token in a token": lambda item: compact(
        {"alg": "EdDSA", "kid": "ed-1", "cty": "JWT"}, item.token().encode(), item.keys["ed-1"].sign
    ),
    "critical extension": lambda item: _by(item, {"crit": ["exp"], "exp": 1}),
    "payload that is not encoded": _unencoded,
    "key in the header": lambda item: _by_stranger(item, {}),
    "key in the header under a known name": lambda item: _by_stranger(item, {"kid": "ed-1"}),
    "address of a key set in the header": lambda item: _by_stranger(
        item, {"kid": "ed-1", "jku": "https://evil.example/jwks.json", "x5u": "https://evil.example/cert.pem"}
    ),
    "ES256 signature under an RS256 header": lambda item: compact(
        {"alg": "RS256", "kid": "rsa-1"}, item.claims(), item.keys["ec-1"].sign
    ),
    "algorithm of another key's type": lambda item: _by(item, {"alg": "RS256"}, "ec-1"),
    "algorithm that is not accepted": lambda item: _by(item, {"alg": "RS512"}, "rsa-1"),
    "token of another kind": lambda item: _by(item, {"typ": "dpop+jwt"}),
    "payload is a list": lambda item: compact({"alg": "EdDSA", "kid": "ed-1"}, ["acme"], item.keys["ed-1"].sign),
    "payload nested without end": lambda item: compact(
        {"alg": "EdDSA", "kid": "ed-1"}, b"[" * 5000, item.keys["ed-1"].sign
    ),
    "header is a text": lambda item: compact("alg b64", item.claims(), item.keys["ed-1"].sign),
    "header is a list": lambda item: compact(["alg", "b64"], item.claims(), item.keys["ed-1"].sign),
    "too long": lambda item: item.token(more="x" * 9000),
    "two tokens": lambda item: f"{item.token()},{item.token()}",
    "letters of no alphabet": lambda item: item.token()[:-4] + "\xff\xfe\xfd\xfc",
}


@dataclass(frozen=True)
class Shown:
    """Headers and parameters of a request."""

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
    """Return all of both, to try on routes, with the debug headers unless a setting allows them."""
    output = {kind: Shown([("Authorization", f"Bearer {token}")]) for kind, token in bad_tokens(issuer).items()}
    return output | misplaced_tokens(issuer)
