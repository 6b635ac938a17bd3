"""The tools of the catalog: what there is among the tools of others."""

from toolscript.model.items import LARGEST_ID, ItemKind, JsonObject
from toolscript.model.queries import USUAL, ToolQuery
from toolscript.model.servers import CallResult
from toolscript.model.tenancy import Scope, Visitor
from toolscript.surfaces.mcp.argument_reading import (
    one_of,
    require_known,
    share,
    text,
    text_or_texts,
    whole,
    wrong,
)
from toolscript.surfaces.mcp_service import catalog_text
from toolscript.surfaces.mcp_service.catalog_definitions import (
    DEFAULT_LIMIT,
    DEFAULT_SKILLS,
    DEFINITIONS,
    DESCRIBE_TOOL,
    LIST_SKILLS,
    MOST_DESCRIBED,
    MOST_RESULTS,
    MOST_SKILLS_LISTED,
    SEARCH_TOOLS,
)
from toolscript.surfaces.mcp_service.parts import CatalogParts, ServiceTool


def catalog_tools(catalog: CatalogParts) -> list[ServiceTool]:
    async def search(_: Visitor, given: JsonObject) -> CallResult:
        query = _query(given)
        return catalog_text.found(await catalog.search.search(query), with_schemas=query.include_schemas)

    async def describe(_: Visitor, given: JsonObject) -> CallResult:
        wanted = _ids(given)
        known = {one.id: one for one in await catalog.items.items(wanted) if one.is_active}
        items = [known[one] for one in wanted if one in known]
        return catalog_text.described(items, [one for one in wanted if one not in known])

    async def skills(_: Visitor, given: JsonObject) -> CallResult:
        require_known(LIST_SKILLS, given, ("limit", "after"))
        limit = whole(given, "limit", DEFAULT_SKILLS, 1, MOST_SKILLS_LISTED)
        page = await catalog.skills.page(text(given, "after", ""), limit + 1, active_only=True)
        return catalog_text.listed(page[:limit], page[limit - 1].skill.id if len(page) > limit else None)

    calls = {SEARCH_TOOLS: search, DESCRIBE_TOOL: describe, LIST_SKILLS: skills}
    return [ServiceTool(DEFINITIONS[name], Scope.TOOLS_READ, call) for name, call in calls.items()]


def _query(given: JsonObject) -> ToolQuery:
    require_known(SEARCH_TOOLS, given, ("query", "limit", "threshold", "type", "skill_ids", "detail"))
    return ToolQuery(
        text(given, "query"),
        ItemKind(one_of(given, "type", [*ItemKind])) if "type" in given else None,
        whole(given, "limit", DEFAULT_LIMIT, 1, MOST_RESULTS),
        share(given, "threshold", USUAL.tool),
        include_schemas=one_of(given, "detail", ("compact", "schema")) == "schema",
        skill_ids=text_or_texts(given, "skill_ids"),
    )


def _ids(given: JsonObject) -> list[int]:
    require_known(DESCRIBE_TOOL, given, ("id", "ids"))
    if ("id" in given) == ("ids" in given):
        raise wrong("id", "must be given, or `ids`, and not both")
    values = [given["id"]] if "id" in given else given["ids"]
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_DESCRIBED:
        raise wrong("ids", f"must be a list of 1 to {MOST_DESCRIBED} ids")
    return list(dict.fromkeys(whole({"id": one}, "id", 0, 1, LARGEST_ID) for one in values))
