"""/api/v1/curation: the rules of people about tool search."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.params import Depends

from toolscript.core.errors import SetupError
from toolscript.core.namespaces import NAME_PATTERN, chosen_namespace
from toolscript.core.web.cursors import decode_cursor
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit, NumberInPath
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.tools.curation import CurationManagement
from toolscript.tools.http.access import Decider, DeciderInQuery, Narrowed, Seen
from toolscript.tools.schemas.curation import NewRule, RuleChanges, RulePage, RuleShown

CURATION_PATH = f"{API_PREFIX}/curation"
InQuery = Annotated[
    str | None,
    Query(pattern=NAME_PATTERN, deprecated=True, description="Earlier place of `namespace` of the body."),
]
_LOCATION = {"description": "The rule.", "required": True, "schema": {"type": "string"}}


def curation_routes(curation: CurationManagement | None, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(CURATION_PATH, "curation", checks)
    _read(router, curation)
    _write(router, curation)
    return router


def _opened(curation: CurationManagement | None) -> CurationManagement:
    if curation is None:
        raise SetupError("this service has no catalog for rules", hint="run `toolscript serve` with a catalog")
    return curation


def _read(router: APIRouter, curation: CurationManagement | None) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List rules, in order of id")
    async def list_rules(seen: Narrowed, cursor: Cursor = "", limit: Limit = USUAL) -> RulePage:
        """Lists rules of the namespaces that the client sees."""
        rules = _opened(curation).within(seen).rules
        return RulePage.of_rules(await rules.page(decode_cursor(cursor, 0), limit + 1), limit)

    @router.get("/{rule_id}", responses=documented(401, 403, 404, 422, 503), summary="One rule")
    async def get_rule(rule_id: NumberInPath, seen: Seen) -> RuleShown:
        """Returns a rule with the name of its tool."""
        return RuleShown.of(await _opened(curation).within(seen).rules.find(rule_id))


def _write(router: APIRouter, curation: CurationManagement | None) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "",
        status_code=201,
        responses={201: {"headers": {"Location": _LOCATION}}, **refusals},
        summary="Add a rule: promote a tool, exclude one, or say what words mean",
    )
    async def add_rule(
        request: NewRule, seen: Seen, decider: Decider, response: Response, namespace: InQuery = None
    ) -> RuleShown:
        """The next search of this process applies it; those of other processes within a second.

        A tool of the rule must be in the namespace of the rule.
        """
        into = chosen_namespace(seen, request.namespace or namespace)
        added = await _opened(curation).add(request.rule(), decider.on_behalf_of(request.person), into)
        response.headers["Location"] = f"{CURATION_PATH}/{added.id}"
        return RuleShown.of(added)

    @router.patch("/{rule_id}", responses=refusals, summary="Change some fields of a rule")
    async def change_rule(rule_id: NumberInPath, request: RuleChanges, seen: Seen, decider: Decider) -> RuleShown:
        """Fields that are left out stay as they are; the kind cannot change."""
        changes, by = request.written(only_set=True), decider.on_behalf_of(request.person)
        return RuleShown.of(await _opened(curation).within(seen).change(rule_id, changes, by))

    @router.delete(
        "/{rule_id}",
        status_code=204,
        responses=documented(401, 403, 404, 422, 503),
        summary="Delete a rule",
    )
    async def delete_rule(rule_id: NumberInPath, seen: Seen, by: DeciderInQuery) -> None:
        """The next search of this process is without it; those of other processes within a second."""
        await _opened(curation).within(seen).remove(rule_id, by)
