"""Who may use the routes of the catalog, the namespaces that each client sees, and its name in the audit.

A check runs before a route and records both; the route takes them as `Seen` and `Decider`, and fails without one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.routing import APIRoute

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.errors import Forbidden, Unauthorized
from toolscript.core.namespaces import NAME_PATTERN, ONLY_DEFAULT, Namespaces, chosen_namespace, require_seen
from toolscript.core.taxonomy import Actor
from toolscript.core.text import visible
from toolscript.core.web.auth import READING, AdminAccess, Identify, check_first
from toolscript.core.web.clients import ADMINISTRATOR, counts_as
from toolscript.core.web.errors import require_scope
from toolscript.tools.model.skills import MAX_ACTOR
from toolscript.tools.schemas.skills import ON_BEHALF_OF, REVIEWER, Person
from toolscript.tools.skills.importing import LOADER

# In the audit: the administrator's credential has no subject, and in development nothing authenticates clients.
ADMIN_ACTOR, NOBODY = "admin", "api"
# Of entries that a worker wrote for people.
WORKER = "toolscript worker"
RESERVED = frozenset({ADMIN_ACTOR, NOBODY, LOADER, WORKER})

RequestCheck = Callable[[Request, Response], Awaitable[None]]


class Access(Enum):
    """Who may use a route.

    READ: tokens with the scope `tools:read`, and anonymous clients of a public catalog. MANAGE: tokens with the
    scope `tools:manage`. Both within their namespaces; administrators in all.
    """

    READ = "read"
    MANAGE = "manage"
    ADMIN = "admin"


@dataclass(frozen=True)
class CatalogAccess:
    """`identify` is None if nothing authenticates clients."""

    admin: AdminAccess = field(default_factory=AdminAccess)
    identify: Identify | None = None

    def check(self, read: Access, write: Access) -> RequestCheck:
        """Return a router dependency, by the method of the request."""
        checks = {Access.READ: self._search, Access.MANAGE: self._manage, Access.ADMIN: self._administer}

        async def check_request(request: Request, response: Response) -> None:
            await self._noting(checks[read if request.method in READING else write], request, response)

        return check_request

    def searches(self) -> type[APIRoute]:
        async def check_search(request: Request, response: Response) -> None:
            await self._noting(self._search, request, response)

        return check_first(check_search)

    async def _noting(self, check: RequestCheck, request: Request, response: Response) -> None:
        try:
            await check(request, response)
        except Unauthorized:
            await self.admin.note_wrong(request)
            raise

    async def _search(self, request: Request, response: Response) -> None:
        """Admit a read, a list or a search. It counts anonymous clients, too, and never administrators."""
        if self._is_admin(request):
            self._see_all(request)
        elif self.identify is None:
            _see(request, ONLY_DEFAULT, "")
        else:
            identity = await self.identify(request, response)
            require_scope(identity, Scope.TOOLS_READ)
            _see(request, identity.namespaces, _name_of(identity))

    async def _manage(self, request: Request, response: Response) -> None:
        if self._is_admin(request):
            self._see_all(request)
            return
        refusal = self.admin.refusal(request)
        if self.identify is None or not _has_jwt(request):
            raise refusal or Forbidden("this needs a token")
        try:
            identity = await self.identify(request, response)
        except Unauthorized as error:
            raise refusal if refusal and "error" not in error.details else error from None
        require_scope(identity, Scope.TOOLS_MANAGE)
        _see(request, identity.namespaces, _name_of(identity))

    async def _administer(self, request: Request, _: Response) -> None:
        refusal = self.admin.refusal(request)
        if refusal is not None:
            raise refusal
        self._see_all(request)

    def _see_all(self, request: Request) -> None:
        counts_as(request, ADMINISTRATOR, has_token=True)
        _see(request, None, "" if self.admin.is_by_address(request) else ADMIN_ACTOR)

    def _is_admin(self, request: Request) -> bool:
        """Return whether an administrator sent the request.

        In development a client on this machine is one, unless it shows a tenant's token: then that counts.
        """
        if self.identify is not None and self.admin.is_by_address(request) and _has_jwt(request):
            return False
        return self.admin.admits(request)


def _has_jwt(request: Request) -> bool:
    return request.headers.get("authorization", "").count(".") == 2


def _name_of(identity: Identity) -> str:
    """Return the name of an authenticated client in the audit, which is never that of another kind of client."""
    principal = identity.principal
    if principal is None:
        return ""
    name = visible(str(principal.subject)).strip()[:MAX_ACTOR] or principal.tenant.name
    return f"token:{name}" if name in RESERVED else name


def _see(request: Request, namespaces: Namespaces, actor: str) -> None:
    request.state.namespaces = namespaces
    request.state.actor = actor


@dataclass(frozen=True)
class Deciding:
    """The client of a write that the audit records; `name` is empty where nothing authenticates clients."""

    name: str

    def on_behalf_of(self, person: str) -> Actor:
        """Return the actor. `person` is the client's own word, all that is known of a client without a name."""
        if not self.name:
            return Actor(person or NOBODY)
        return Actor(self.name, person or None)


async def _deciding(request: Request) -> Deciding:
    return Deciding(request.state.actor)


async def _decider_in_query(
    deciding: Annotated[Deciding, Depends(_deciding)],
    on_behalf_of: Annotated[Person | None, Query(description=ON_BEHALF_OF)] = None,
    reviewer: Annotated[Person | None, Query(description=REVIEWER, deprecated=True)] = None,
) -> Actor:
    return deciding.on_behalf_of(on_behalf_of or reviewer or "")


async def _seen(request: Request) -> Namespaces:
    namespaces: Namespaces = request.state.namespaces
    return namespaces


async def _narrowed(
    seen: Annotated[Namespaces, Depends(_seen)],
    namespace: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Only those of this namespace. Default: of all seen.")
    ] = None,
) -> Namespaces:
    return seen if namespace is None else frozenset({require_seen(seen, namespace)})


async def _chosen(
    seen: Annotated[Namespaces, Depends(_seen)],
    namespace: Annotated[
        str | None,
        Query(
            pattern=NAME_PATTERN,
            description="Namespace of the source. Default: `default`, or the only one that the token sees.",
        ),
    ] = None,
) -> str:
    return chosen_namespace(seen, namespace)


# The namespaces that the client sees; None for all.
Seen = Annotated[Namespaces, Depends(_seen)]
# The same, narrowed by the query parameter `namespace`.
Narrowed = Annotated[Namespaces, Depends(_narrowed)]
# The client, for the audit.
Decider = Annotated[Deciding, Depends(_deciding)]
# The actor of a request without a body.
DeciderInQuery = Annotated[Actor, Depends(_decider_in_query)]
# The one namespace of a source that the path names. A body names its namespace itself.
Chosen = Annotated[str, Depends(_chosen)]
