"""How Qdrant knows us and how we know it: the API key, the CA and the certificate of this client."""

import ipaddress
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult

import grpc

from toolscript.errors import SetupError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tls:
    """Files in PEM format; empty: the CAs that gRPC ships with, and no certificate of this client."""

    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        if bool(self.client_certificate) != bool(self.client_key):
            raise SetupError(
                "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE and TOOLSCRIPT_QDRANT_CLIENT_KEY belong together",
                hint="set both of them, or none",
            )
        return grpc.ssl_channel_credentials(
            root_certificates=_pem("TOOLSCRIPT_QDRANT_CA_FILE", self.ca_file),
            private_key=_pem("TOOLSCRIPT_QDRANT_CLIENT_KEY", self.client_key),
            certificate_chain=_pem("TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE", self.client_certificate),
        )

    def require_https(self, addresses: Sequence[SplitResult]) -> None:
        """Files for TLS and an address without it: the traffic would be readable, and nobody would know."""
        named = self.ca_file or self.client_certificate or self.client_key
        if named and any(address.scheme != "https" for address in addresses):
            raise SetupError(
                "certificates for Qdrant are set, but TOOLSCRIPT_QDRANT_URL is http://",
                hint="write https:// in TOOLSCRIPT_QDRANT_URL, or take the TOOLSCRIPT_QDRANT_CA_FILE "
                "and TOOLSCRIPT_QDRANT_CLIENT_* settings out",
            )


def warn_of_readable_key(addresses: Sequence[SplitResult]) -> None:
    readable = [address.hostname for address in addresses if address.scheme == "http" and not _is_here(address)]
    if readable:
        logger.warning(
            "the Qdrant API key goes over the network unencrypted; use https:// in TOOLSCRIPT_QDRANT_URL",
            extra={"part": "qdrant", "hosts": readable},
        )


def _is_here(address: SplitResult) -> bool:
    try:
        return ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return address.hostname == "localhost"


def _pem(setting: str, file: str) -> bytes | None:
    if not file:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SetupError(f"{setting} cannot be read: {error.strerror}: {file}", hint="name a PEM file") from None
    # gRPC takes anything, and says later that nobody answers.
    if b"-----BEGIN " not in content:
        raise SetupError(f"{setting} is not a PEM file: {file}", hint="convert it with `openssl`")
    return content
