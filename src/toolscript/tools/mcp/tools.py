"""How answers from the catalog read: short lines for a model, and the same facts as data for a program."""

from collections.abc import Sequence

from toolscript.model.items import JsonObject, StoredItem
from toolscript.model.results import ToolAnswer, ToolHit
from toolscript.model.servers import CallResult
from toolscript.model.skill_json import entry_to_json
from toolscript.model.skills import SkillEntry
from toolscript.model.tool_ids import tool_id
from toolscript.surfaces.mcp.answers import MOST_WORDS, compact_json, failed_with, one_line, result


def found(answer: ToolAnswer, *, with_schemas: bool) -> CallResult:
    hits = [_hit(hit, with_schemas) for hit in answer.hits]
    misses = [_hit(hit, with_schemas) for hit in answer.near_misses]
    data = {
        "good_match": answer.good_match,
        "results": hits,
        "near_misses": misses,
        "unmatched_words": list(answer.unmatched),
        "degraded": list(answer.degraded),
    }
    lines = [*_verdict(answer), *map(_line, hits)]
    if misses:
        lines += ["Near misses:", *map(_line, misses)]
    if answer.degraded:
        lines.append(f"Not all of the search worked: {', '.join(answer.degraded)}.")
    return result("\n".join(lines), data)


def described(items: Sequence[StoredItem], unknown: Sequence[int]) -> CallResult:
    tools = [_described(item) for item in items]
    missing = [f"There is no tool with the id {one}; search_tools names those there are." for one in unknown]
    if not tools:
        return failed_with("\n".join(missing))
    return result("\n".join([*map(compact_json, tools), *missing]), {"tools": tools, "unknown": list(unknown)})


def listed(skills: Sequence[SkillEntry], following: str | None) -> CallResult:
    shown = [_skill(entry) for entry in skills]
    lines = [_skill_line(one) for one in shown]
    more = [f"There are more: after {following}."] if following else []
    return result("\n".join([*lines, *more] or ["There are none."]), {"skills": shown, "next": following})


def _verdict(answer: ToolAnswer) -> list[str]:
    """Before all else, and only where there is something to beware of."""
    if not answer.hits:
        return ["Nothing reaches the threshold."]
    if answer.good_match is not False:
        return []
    words = ", ".join(answer.unmatched[:MOST_WORDS])
    return [f"No good match, the first is a guess.{f' Matched nothing: {words}.' if words else ''}"]


def _hit(hit: ToolHit, with_schema: bool) -> dict[str, object]:
    entry: dict[str, object] = {
        "id": hit.id,
        "tool": tool_id(hit.server, hit.name) if hit.server else hit.name,
        "type": str(hit.kind),
        "description": one_line(hit.description),
        "score": round(hit.score, 4),
        "confidence": None if hit.confidence is None else round(hit.confidence, 2),
        "skill_ids": list(hit.skill_ids),
    }
    if with_schema and hit.schemas.input_schema is not None:
        entry["input_schema"] = hit.schemas.input_schema
    return entry


def _line(hit: JsonObject) -> str:
    sure = f"{hit['score']:.2f}" if hit["confidence"] is None else f"{hit['confidence']:.2f}"
    line = f"{hit['tool']} {sure} (id {hit['id']}): {hit['description']}"
    return f"{line}\n  {compact_json(hit['input_schema'])}" if "input_schema" in hit else line


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
        "type": str(item.kind),
        "server": item.server,
        "name": item.name,
        "description": item.description,
        "skill_ids": list(stored.skill_ids),
        **{name: part for name, part in parts.items() if part is not None},
    }


def _skill_line(skill: JsonObject) -> str:
    said = one_line(f"{skill['name']}. {skill['description']}")
    return f"{skill['id']} ({skill['tool_count']} tools): {said}"


def _skill(entry: SkillEntry) -> dict[str, object]:
    known = entry_to_json(entry)
    return {name: known[name] for name in ("id", "name", "description", "parent_domain", "keywords", "tool_count")}
