"""The header `WWW-Authenticate` of a server that refuses a request (RFC 6750, RFC 9728)."""

import re
from dataclasses import dataclass

MAX_HEADER = 8_000
_FORBIDDEN = 403
_PARAMETER = re.compile(r'(?:^|[\s,])([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


@dataclass(frozen=True)
class Challenge:
    """`wants_more`: the token is valid, and lacks a scope."""

    resource_metadata: str = ""
    scopes: tuple[str, ...] | None = None
    wants_more: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The scopes that a valid token lacks."""
        return (self.scopes or ()) if self.wants_more else ()

    @classmethod
    def of(cls, status: int, header: str) -> "Challenge":
        fields = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(header[:MAX_HEADER])}
        scopes = tuple(fields["scope"].split()) if fields.get("scope") else None
        wants_more = status == _FORBIDDEN and fields.get("error") == "insufficient_scope"
        return cls(fields.get("resource_metadata", ""), scopes, wants_more)
