"""Settings of clients of a service. Read without the service's own settings, which are slow to import."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from toolscript.core.errors import SetupError

ANYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - where a server listens, not where we do


@dataclass(frozen=True)
class ClientSettings:
    service_url: str = field(
        default="",
        metadata={
            "accepts": "text",
            "description": "Address of a running service, `unix:/path/of.sock` for a socket; empty: where "
            "`serve` listens on this machine, by `TOOLSCRIPT_SOCKET`, or `TOOLSCRIPT_HOST` and `TOOLSCRIPT_PORT`.",
        },
    )
    token: str = field(
        default="",
        repr=False,
        metadata={
            "accepts": "secret text",
            "description": "Token that commands send to a service: that of a tenant, or of its admin.",
        },
    )

    def __post_init__(self) -> None:
        """Check that the token fits into a header. The message does not contain it."""
        if not (self.token.isascii() and self.token.isprintable()):
            raise SetupError("TOOLSCRIPT_TOKEN cannot be used: expected printable ASCII")

    @property
    def address(self) -> str:
        return self.service_url or _default_address()


def load_client_settings(overrides: Mapping[str, str | None] | None = None) -> ClientSettings:
    """Load the settings: flags before environment before defaults."""
    flags = {name: value for name, value in (overrides or {}).items() if value is not None}
    environment = {
        field.name: os.environ.get(f"TOOLSCRIPT_{field.name.upper()}", "").strip()
        for field in fields(ClientSettings)
    }
    return ClientSettings(**{**environment, **flags})


def _default_address() -> str:
    if socket := os.environ.get("TOOLSCRIPT_SOCKET", "").strip():
        return f"unix:{socket}"
    host, port = os.environ.get("TOOLSCRIPT_HOST", "").strip(), os.environ.get("TOOLSCRIPT_PORT", "").strip()
    if port and not (port.isascii() and port.isdigit() and len(port) < 6):
        raise SetupError("TOOLSCRIPT_PORT cannot be used: expected whole number from 0 to 65535")
    name = "127.0.0.1" if host in ANYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port or 8080}"
