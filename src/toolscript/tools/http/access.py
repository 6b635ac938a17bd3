"""Who may use the routes of the catalog, and the namespaces that each client sees.

A check runs before a route and records the namespaces; the route takes them as `Seen`, and fails without a check.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.routing import APIRoute

from toolscript.core.auth.model import Scope
from toolscript.core.errors import Forbidden, Unauthorized
from toolscript.core.namespaces import NAME_PATTERN, ONLY_DEFAULT, Namespaces, chosen_namespace, require_seen
from toolscript.core.web.auth import READING, AdminAccess, Identify, check_first
from toolscript.core.web.errors import require_scope

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
    """`identify` is None if nothing authenticates clients. In a public catalog, no token is needed to read."""

    admin: AdminAccess = field(default_factory=AdminAccess)
    identify: Identify | None = None
    is_public: bool = True

    def check(self, read: Access, write: Access) -> RequestCheck:
        """Return a router dependency, by the method of the request."""
        checks = {Access.READ: self._read, Access.MANAGE: self._manage, Access.ADMIN: self._administer}

        async def check_request(request: Request, response: Response) -> None:
            await checks[read if request.method in READING else write](request, response)

        return check_request

    def searches(self) -> type[APIRoute]:
        """Return a route class for searches. It counts anonymous clients, too, and never administrators."""
        return check_first(self._search)

    async def _read(self, request: Request, response: Response) -> None:
        if self.is_public and "authorization" not in request.headers:
            # Only the administrators of a socket or in development come without a token.
            _see(request, None if self.admin.admits(request) else ONLY_DEFAULT)
        else:
            await self._search(request, response)

    async def _search(self, request: Request, response: Response) -> None:
        if self._is_admin(request):
            _see(request, None)
        elif self.identify is None:
            _see(request, ONLY_DEFAULT)
        else:
            identity = await self.identify(request, response)
            require_scope(identity, Scope.TOOLS_READ)
            _see(request, identity.namespaces)

    async def _manage(self, request: Request, response: Response) -> None:
        if self._is_admin(request):
            _see(request, None)
            return
        refusal = self.admin.refusal(request)
        if self.identify is None or not _has_jwt(request):
            raise refusal or Forbidden("this needs a token")
        try:
            identity = await self.identify(request, response)
        except Unauthorized as error:
            raise refusal if refusal and "error" not in error.details else error from None
        require_scope(identity, Scope.TOOLS_MANAGE)
        _see(request, identity.namespaces)

    async def _administer(self, request: Request, _: Response) -> None:
        refusal = self.admin.refusal(request)
        if refusal is not None:
            raise refusal
        _see(request, None)

    def _is_admin(self, request: Request) -> bool:
        """Return whether an administrator sent the request.

        In development a client on this machine is one, unless it shows a tenant's token: then that counts.
        """
        if self.identify is not None and self.admin.is_by_address(request) and _has_jwt(request):
            return False
        return self.admin.admits(request)


def _has_jwt(request: Request) -> bool:
    return request.headers.get("authorization", "").count(".") == 2


def _see(request: Request, namespaces: Namespaces) -> None:
    request.state.namespaces = namespaces


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
# The one namespace of a source.
Chosen = Annotated[str, Depends(_chosen)]
