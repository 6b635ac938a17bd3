"""/api/v1/tenants: the tenants that have documents, for administrators."""

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.params import Depends

from toolscript.core.web.cursors import decode_key
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.documents.http.dependencies import ABSENT, DocumentRoutes
from toolscript.documents.schemas import TenantPage, TenantShown

TENANTS_PATH = f"{API_PREFIX}/tenants"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")

TenantInPath = Annotated[
    str, Path(pattern=rf"^{_NAME.pattern}$", description="Name of the tenant, as in its tokens.")
]


def tenant_routes(documents: DocumentRoutes | None, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    """Return the routes; `checks` limit them to administrators."""
    routes = documents or ABSENT
    router = api_router(tag="tenants", checks=checks)

    @router.get(TENANTS_PATH, responses=documented(401, 403, 422, 500, 503), summary="List tenants")
    async def list_tenants(cursor: Cursor = "", limit: Limit = USUAL) -> TenantPage:
        """Lists the tenants that have put documents, with their counts in the live index."""
        counted = await routes.tenants.page(decode_key(cursor, _NAME.fullmatch), limit + 1)
        return TenantPage.of(counted, limit, TenantShown.of, key=lambda usage: usage.tenant.name)

    @router.get(
        f"{TENANTS_PATH}/{{tenant_name}}", responses=documented(401, 403, 404, 422, 500, 503), summary="One tenant"
    )
    async def get_tenant(tenant_name: TenantInPath) -> TenantShown:
        """Returns a tenant with its counts in the live index."""
        return TenantShown.of(await routes.tenants.tenant(tenant_name))

    return router
