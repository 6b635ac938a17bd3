"""A token issuer, independent of the code that verifies tokens: it assembles the bytes by hand."""

import base64
import functools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Json = dict[str, Any]
Sign = Callable[[bytes], bytes]
Public = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


@dataclass(frozen=True)
class SigningKey:
    kid: str
    algorithm: str
    sign: Sign
    jwk: Json
    public: Public

    @property
    def pem(self) -> bytes:
        return self.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def rsa_key(kid: str, bits: int = 2048) -> SigningKey:
    key = rsa.generate_private_key(65537, bits)
    numbers = key.public_key().public_numbers()
    jwk = {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    return _signing_key(
        kid, "RS256", lambda d: key.sign(d, padding.PKCS1v15(), hashes.SHA256()), jwk, key.public_key()
    )


def ec_key(kid: str) -> SigningKey:
    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()

    def sign(data: bytes) -> bytes:
        return b"".join(
            part.to_bytes(32, "big") for part in decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        )

    jwk = {"kty": "EC", "crv": "P-256", "x": _number(numbers.x, 32), "y": _number(numbers.y, 32)}
    return _signing_key(kid, "ES256", sign, jwk, key.public_key())


def ed_key(kid: str) -> SigningKey:
    key = ed25519.Ed25519PrivateKey.generate()
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(key.public_key().public_bytes_raw())}
    return _signing_key(kid, "EdDSA", key.sign, jwk, key.public_key())


def _signing_key(kid: str, algorithm: str, sign: Sign, jwk: Json, public: Public) -> SigningKey:
    return SigningKey(kid, algorithm, sign, {**jwk, "kid": kid, "alg": algorithm, "use": "sig"}, public)


class Issuer:
    """Issuer with one key of each kind; its tokens are valid by default."""

    name = "https://issuer.example"
    audience = "toolscript"

    def __init__(self, *keys: SigningKey, now: Callable[[], float] = time.time) -> None:
        self.keys = {key.kid: key for key in keys or (rsa_key("rsa-1"), ec_key("ec-1"), ed_key("ed-1"))}
        self._now = now

    def key_set(self) -> Json:
        return {"keys": [key.jwk for key in self.keys.values()]}

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(self.key_set()), "utf-8")
        return path

    def claims(self, tenant: object = "acme", **other: object) -> Json:
        """A claim that is None is left out."""
        now = int(self._now())
        default = {"iss": self.name, "aud": self.audience, "iat": now, "exp": now + 3600, "tenant_id": tenant}
        return {name: value for name, value in {**default, **other}.items() if value is not None}

    def token(
        self,
        tenant: object = "acme",
        *,
        kid: str = "ed-1",
        header: Mapping[str, object] | None = None,
        **claims: object,
    ) -> str:
        key = self.keys[kid]
        return compact(
            {"alg": key.algorithm, "typ": "JWT", "kid": kid, **(header or {})},
            self.claims(tenant, **claims),
            key.sign,
        )


@functools.cache
def an_issuer() -> Issuer:
    """Return a shared issuer for tests that do not change it: generating keys is slow."""
    return Issuer()


def compact(header: object, payload: object, sign: Sign) -> str:
    """Sign header and payload unchecked. A payload of bytes is used as it is."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signed = f"{b64(json.dumps(header).encode())}.{b64(body)}"
    return f"{signed}.{b64(sign(signed.encode()))}"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(number: int, length: int = 0) -> str:
    return b64(number.to_bytes(length or (number.bit_length() + 7) // 8, "big"))
