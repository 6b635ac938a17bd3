"""A CA of a test's own, and what it signs, as PEM files."""

import datetime as dt
import ipaddress
import uuid
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    certificate: str
    key: str


class PrivateCa:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"private CA {uuid.uuid4()}")
        draft = _draft(self._name, self._name, self._key.public_key())
        usage = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = draft.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.file = self._write("ca.pem", self._certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str) -> Signed:
        """Sign a certificate for a local server, or for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        draft = _draft(_name(name), self._name, key.public_key())
        names = x509.SubjectAlternativeName(here)
        signed = draft.add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Signed(
            self._write(f"{name}.pem", signed.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}.key", secret),
        )

    def _write(self, name: str, content: bytes) -> str:
        """Write a file readable by all: the server runs as another user."""
        file = self._folder / name
        file.write_bytes(content)
        file.chmod(0o644)
        return str(file)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )
