"""Tenants, plans, scopes and callers, and the ports that authenticate and count them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from toolscript.core.errors import Unauthorized
from toolscript.core.items import JsonObject

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@dataclass(frozen=True)
class Tenant:
    """Whose documents they are. The name comes from a verified token, or from whoever runs the installation."""

    name: str

    def __post_init__(self) -> None:
        if not _TENANT.fullmatch(self.name):
            raise Unauthorized(
                "the tenant's name is none",
                hint="1 to 128 letters, digits and ._:@-, the first a letter or a digit",
            )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Plan:
    """What a tenant may do. None: as much as the installation can.

    `metadata_fields` are those that may be asked for and filtered by.
    """

    name: str
    max_top_k: int | None = None
    metadata_fields: frozenset[str] | None = None
    max_documents: int | None = None
    requests_per_minute: int | None = None

    def visible(self, metadata: JsonObject) -> JsonObject:
        allowed = self.metadata_fields
        return metadata if allowed is None else {name: metadata[name] for name in metadata if name in allowed}


UNLIMITED = Plan("unlimited")


class Scope(StrEnum):
    """What somebody may do, as a token's `scope` names it."""

    KNOWLEDGE_READ = "knowledge:read"
    TOOLS_READ = "tools:read"
    DOCUMENTS_READ = "documents:read"
    DOCUMENTS_WRITE = "documents:write"


@dataclass(frozen=True)
class Principal:
    """`scopes` None: the token says nothing of scopes, and its caller may do whatever its tenant may.

    Not every issuer knows scopes. A token that has the claim, were it empty, allows what is in it and no more.
    """

    tenant: Tenant
    plan: Plan = UNLIMITED
    subject: str = ""
    scopes: frozenset[str] | None = None

    def may(self, scope: Scope) -> bool:
        return self.scopes is None or scope in self.scopes


@dataclass(frozen=True)
class Identity:
    """Whoever asks, with a token or without: what it may do, and on whose behalf if a token says so."""

    scopes: frozenset[Scope]
    principal: Principal | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes


@dataclass(frozen=True)
class Anonymous:
    """Somebody without a token. All that is known is where it asks from, and only its requests are counted."""

    address: str

    @property
    def name(self) -> str:
        """One that no tenant can have."""
        return f"~{self.address}"


@dataclass(frozen=True)
class Budget:
    """How many requests of a minute are left. `limit` None: there is none."""

    limit: int | None = None
    remaining: int = 0
    resets_in_seconds: int = 60
    allowed: bool = True


@dataclass(frozen=True)
class KnownTenant:
    """A tenant that has written. `since` is when it first did, in ISO 8601."""

    tenant: Tenant
    since: str


class TokenVerifier(Protocol):
    """Who shows this token?"""

    async def verify(self, token: str) -> Principal:
        """The caller; Unauthorized for every token that is not certainly right."""


class RequestBudget(Protocol):
    """How many requests a tenant, or an address without a token, still has in this minute."""

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        """Takes one, if one is left."""
