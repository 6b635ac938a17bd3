"""The MCP tools of the catalog: their arguments, and their results as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.items import MAX_ID, ItemKind, JsonObject, StoredItem, tool_id
from toolscript.core.mcp.answers import MAX_WORDS, compact_json, failed_with, one_line, result
from toolscript.core.mcp.arguments import one_of, renamed, require_known, share, text, text_or_texts, whole, wrong
from toolscript.core.mcp.tools import ServiceTool
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.namespaces import DEFAULT_NAMESPACE, searched_namespaces, valid_namespace
from toolscript.core.retrieval.query import SearchType
from toolscript.core.taxonomy import SkillEntry
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.tools.mcp.definitions import (
    DEFAULT_LIMIT,
    DEFAULT_SKILLS,
    DEFINITIONS,
    DESCRIBE_TOOL,
    LIST_SKILLS,
    MAX_DESCRIBED,
    MAX_RESULTS,
    MAX_SKILLS_LISTED,
    SEARCH_TOOLS,
    SkillSummary,
    ToolSummary,
)
from toolscript.tools.model.answer import OTHER_WORDS, ToolAnswer, ToolHit, ToolStep
from toolscript.tools.model.query import USUAL, ToolQuery
from toolscript.tools.ports import ListsSkills, ReadsItems, RecordSearch, SearchesTools
from toolscript.tools.schemas.search import ToolMatch
from toolscript.tools.schemas.skills import SkillShown


def search_result(answer: ToolAnswer, *, with_schemas: bool) -> CallResult:
    # Each tool is described once, also one of several steps.
    hits = [_hit(hit, with_schemas) for hit in answer.all_hits]
    misses = [_hit(hit, with_schemas) for hit in answer.near_misses]
    data = {
        "good_match": answer.good_match,
        "results": hits,
        "near_misses": misses,
        "steps": [_step(step) for step in answer.steps],
        "unmatched_words": list(answer.unmatched),
        "hint": answer.hint,
        "degraded": list(answer.degraded),
    }
    lines = [*_verdict(answer), *map(_line, hits)]
    if answer.steps:
        lines += ["Steps:", *map(_step_line, answer.steps)]
    if misses:
        lines += ["Near misses:", *map(_line, misses)]
    if answer.hint:
        lines.append(f"Hint: {answer.hint}.")
    if answer.degraded:
        lines.append(f"Not all of the search worked: {', '.join(answer.degraded)}.")
    return result("\n".join(lines), data)


def _step(step: ToolStep) -> dict[str, object]:
    shown = {"query": step.query, "good_match": step.good_match, "ids": [hit.id for hit in step.hits]}
    return {**shown, "near_misses": [hit.id for hit in step.near_misses]} if step.near_misses else shown


def _step_line(step: ToolStep) -> str:
    found, guesses = (
        ", ".join(f"{_name(hit)} (id {hit.id})" for hit in hits) for hits in (step.hits, step.near_misses)
    )
    guess = "" if step.good_match or not found else " (no good match)"
    nothing = f"nothing fits{guesses and f'; guesses: {guesses}'}"
    return f"- {one_line(step.query)}: {found or nothing}{guess}"


def describe_result(items: Sequence[StoredItem], unknown: Sequence[int]) -> CallResult:
    tools = [_described(item) for item in items]
    missing = [f"There is no tool with the id {id_}; search_tools returns valid ids." for id_ in unknown]
    if not tools:
        return failed_with("\n".join(missing))
    return result("\n".join([*map(compact_json, tools), *missing]), {"results": tools, "unknown": list(unknown)})


def skills_result(skills: Sequence[SkillEntry], following: str | None) -> CallResult:
    entries = [_skill(entry) for entry in skills]
    lines = list(map(_skill_line, skills))
    cursor = None if following is None else encode_cursor(following)
    more = [] if cursor is None else [f"There are more: cursor {cursor}."]
    return result("\n".join([*lines, *more] or ["There are none."]), {"results": entries, "next_cursor": cursor})


def _verdict(answer: ToolAnswer) -> list[str]:
    """Return the first line, only if the client should be careful."""
    if not answer.all_hits and answer.hint != OTHER_WORDS:
        return ["Nothing reaches the threshold."]
    if answer.good_match is not False:
        return []
    words = ", ".join(answer.unmatched[:MAX_WORDS])
    verdict = "No good match, the first is a guess." if answer.all_hits else "No good match."
    return [f"{verdict} Matched nothing: {words}." if words else verdict]


def _hit(hit: ToolHit, with_schema: bool) -> dict[str, object]:
    entry = ToolMatch.of(hit).model_dump(mode="json", include=set(ToolSummary.model_fields))
    if not with_schema or entry["input_schema"] is None:
        del entry["input_schema"]
    return {
        **entry,
        "id": hit.id,
        "tool": _name(hit),
        "description": one_line(hit.description),
        "score": round(hit.score, 4),
        "confidence": None if hit.confidence is None else round(hit.confidence, 2),
    }


def _name(hit: ToolHit) -> str:
    return tool_id(hit.server, hit.name) if hit.server else hit.name


def _line(hit: JsonObject) -> str:
    sure = f"{hit['score']:.2f}" if hit["confidence"] is None else f"{hit['confidence']:.2f}"
    line = f"{hit['tool']} {sure} ({_place(hit)}): {hit['description']}"
    return f"{line}\n  {compact_json(hit['input_schema'])}" if "input_schema" in hit else line


def _place(hit: JsonObject) -> str:
    """Return what tells it from a tool of the same name; most catalogs have no namespace but the default."""
    is_default = hit["namespace"] == DEFAULT_NAMESPACE
    return f"id {hit['id']}" if is_default else f"id {hit['id']}, namespace {hit['namespace']}"


def _described(stored: StoredItem) -> dict[str, object]:
    item = stored.item
    parts = {
        "input_schema": item.input_schema,
        "output_schema": item.output_schema,
        "annotations": item.annotations,
    }
    return {
        "id": stored.id,
        "tool": tool_id(item.server, item.name) if item.server else item.name,
        "namespace": stored.namespace,
        "kind": str(item.kind),
        "server": item.server,
        "name": item.name,
        "description": item.description,
        "skill_ids": list(stored.skill_ids),
        **{name: part for name, part in parts.items() if part is not None},
    }


def _skill_line(entry: SkillEntry) -> str:
    """Return the skill with what a person wrote of it: what its items say, nobody has approved."""
    skill = entry.skill
    description = one_line(f"{skill.name}. {skill.description}")
    return f"{skill.id} ({entry.tool_count} tools): {description}"


def _skill(entry: SkillEntry) -> dict[str, object]:
    return SkillShown.of(entry).model_dump(mode="json", include=set(SkillSummary.model_fields))


@dataclass(frozen=True)
class CatalogDependencies:
    search: SearchesTools
    items: ReadsItems
    skills: ListsSkills
    record: RecordSearch | None = None


def catalog_tools(catalog: CatalogDependencies, search_type: SearchType = SearchType.HYBRID) -> list[ServiceTool]:
    """Return the tools. `search_type` is the setting of the service: the tool has no such argument."""

    async def search(identity: Identity, arguments: JsonObject) -> CallResult:
        query = _query(arguments, search_type, identity.namespaces)
        answer = await catalog.search.search(query)
        if catalog.record is not None:
            catalog.record(query, answer)
        return search_result(answer, with_schemas=query.include_schemas)

    async def describe(identity: Identity, arguments: JsonObject) -> CallResult:
        ids, seen = _ids(arguments), identity.namespaces
        stored = await catalog.items.items(ids)
        by_id = {item.id: item for item in stored if item.is_active and item.namespace in seen}
        items = [by_id[id_] for id_ in ids if id_ in by_id]
        return describe_result(items, [id_ for id_ in ids if id_ not in by_id])

    async def skills(identity: Identity, arguments: JsonObject) -> CallResult:
        require_known(LIST_SKILLS, arguments, ("limit", "cursor"), also=("after",))
        limit = whole(arguments, "limit", DEFAULT_SKILLS, 1, MAX_SKILLS_LISTED)
        after = text(arguments, "after", "") or decode_cursor(text(arguments, "cursor", ""), "")
        page = await catalog.skills.within(identity.namespaces).page(after, limit + 1, active_only=True)
        return skills_result(page[:limit], page[limit - 1].skill.id if len(page) > limit else None)

    calls = {SEARCH_TOOLS: search, DESCRIBE_TOOL: describe, LIST_SKILLS: skills}
    return [ServiceTool(DEFINITIONS[name], Scope.TOOLS_READ, call) for name, call in calls.items()]


def _query(arguments: JsonObject, search_type: SearchType, seen: frozenset[str]) -> ToolQuery:
    data = renamed(arguments, type="kind")
    known = ("query", "limit", "threshold", "kind", "skill_ids", "servers", "namespaces", "detail")
    require_known(SEARCH_TOOLS, data, known)
    namespaces = [valid_namespace(name) for name in text_or_texts(data, "namespaces")]
    return ToolQuery(
        text(data, "query"),
        ItemKind(one_of(data, "kind", [*ItemKind])) if "kind" in data else None,
        whole(data, "limit", DEFAULT_LIMIT, 1, MAX_RESULTS),
        share(data, "threshold", USUAL.tool),
        search_type,
        include_schemas=one_of(data, "detail", ("compact", "schema")) == "schema",
        skill_ids=text_or_texts(data, "skill_ids"),
        namespaces=searched_namespaces(seen, namespaces),
        servers=text_or_texts(data, "servers"),
    )


def _ids(data: JsonObject) -> list[int]:
    require_known(DESCRIBE_TOOL, data, ("id", "ids"))
    if ("id" in data) == ("ids" in data):
        raise wrong("id", "must be given, or `ids`, and not both")
    values = [data["id"]] if "id" in data else data["ids"]
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_DESCRIBED:
        raise wrong("ids", f"must be a list of 1 to {MAX_DESCRIBED} ids")
    return list(dict.fromkeys(whole({"id": value}, "id", 0, 1, MAX_ID) for value in values))
