"""Tenants, plans, scopes and principals, and the ports that authenticate and count them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from toolscript.core.errors import TokenRefused
from toolscript.core.items import JsonObject
from toolscript.core.namespaces import DEFAULT_NAMESPACE

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


class Fault(StrEnum):
    """What is wrong with a token, in one word."""

    EXPIRED = "expired"
    TOO_EARLY = "too_early"
    ISSUER = "issuer"
    AUDIENCE = "audience"
    SIGNATURE = "signature"
    ALGORITHM = "algorithm"
    KEY = "key"
    TENANT = "tenant"
    CLAIMS = "claims"
    SHAPE = "shape"


@dataclass(frozen=True)
class Tenant:
    """Owner of documents. The name comes from a verified token, or from the administrator."""

    name: str

    def __post_init__(self) -> None:
        if not _TENANT.fullmatch(self.name):
            raise TokenRefused(
                Fault.TENANT,
                "the tenant's name is not valid",
                hint="1 to 128 letters, digits and ._:@-, the first a letter or a digit",
            )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Plan:
    """Limits of a tenant. None: no limit.

    `concurrency` are the requests of one kind that a process handles at once.
    `metadata_fields` are the fields that a tenant may request and filter by.
    """

    name: str
    max_top_k: int | None = None
    metadata_fields: frozenset[str] | None = None
    max_documents: int | None = None
    requests_per_minute: int | None = None
    concurrency: int | None = None

    def visible(self, metadata: JsonObject) -> JsonObject:
        allowed = self.metadata_fields
        return metadata if allowed is None else {name: metadata[name] for name in metadata if name in allowed}


UNLIMITED = Plan("unlimited")


class Scope(StrEnum):
    """Permission, as named in the `scope` claim of a token."""

    KNOWLEDGE_READ = "knowledge:read"
    TOOLS_READ = "tools:read"
    DOCUMENTS_READ = "documents:read"
    DOCUMENTS_WRITE = "documents:write"
    TOOLS_MANAGE = "tools:manage"


# Scopes that a token has only if it names them.
NAMED_ONLY = frozenset({Scope.TOOLS_MANAGE})


@dataclass(frozen=True)
class Principal:
    """Authenticated client. `scopes` None: the token has no scope claim and allows all that its tenant may do.

    Not every issuer supports scopes. A token with the claim, even an empty one, allows only the scopes in it.
    `namespaces` are the parts of the catalog that it sees.
    """

    tenant: Tenant
    plan: Plan = UNLIMITED
    subject: str = ""
    scopes: frozenset[str] | None = None
    namespaces: frozenset[str] = frozenset({DEFAULT_NAMESPACE})

    def may(self, scope: Scope) -> bool:
        if self.scopes is None:
            return scope not in NAMED_ONLY
        return scope in self.scopes


@dataclass(frozen=True)
class Identity:
    """Client with or without a token: its scopes, and its principal if it has a token."""

    scopes: frozenset[Scope]
    principal: Principal | None = None
    namespaces: frozenset[str] = frozenset({DEFAULT_NAMESPACE})

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes


@dataclass(frozen=True)
class Anonymous:
    """Client without a token, identified by its address; only its requests are counted."""

    address: str

    @property
    def name(self) -> str:
        """Name for the rate limit, which no tenant can have."""
        return f"~{self.address}"


@dataclass(frozen=True)
class Budget:
    """Remaining requests of a minute. `limit` None: no limit."""

    limit: int | None = None
    remaining: int = 0
    resets_in_seconds: int = 60
    allowed: bool = True


@dataclass(frozen=True)
class KnownTenant:
    """Tenant that has written. `since` is the time of its first write, in ISO 8601."""

    tenant: Tenant
    since: str


class TokenVerifier(Protocol):
    """Verifies tokens."""

    async def verify(self, token: str) -> Principal:
        """Return the principal; raise Unauthorized for every token that is not certainly valid."""


class RequestBudget(Protocol):
    """Requests per minute of a tenant or an anonymous client."""

    async def take(self, client: Tenant | Anonymous, plan: Plan) -> Budget:
        """Take one request, if one is left."""
