"""How answers read: short lines for a model, and the same facts as data for a program."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.errors import ToolscriptError
from toolscript.model.gateway import LocalAnswer, LocalHit
from toolscript.model.items import Item, JsonObject
from toolscript.model.servers import CallResult
from toolscript.model.text import visible, visible_json
from toolscript.model.tool_ids import tool_id
from toolscript.surfaces.mcp.definitions import MOST_RESULTS

LONGEST_DESCRIPTION = 160
MOST_WORDS = 8


@dataclass(frozen=True)
class Unknown:
    """A name that no tool has, and the names that are nearest to it."""

    tool: str
    nearest: tuple[str, ...] = ()


def found(answer: LocalAnswer, *, with_schemas: bool, types: str = "") -> CallResult:
    hits = [_hit(hit, with_schemas) for hit in answer.hits]
    misses = [_hit(hit, with_schemas) for hit in answer.near_misses]
    data: dict[str, object] = {
        "good_match": answer.good_match,
        "results": hits,
        "total": answer.total,
        "semantic": answer.semantic,
        "hint": answer.hint,
    }
    if answer.unmatched and not answer.good_match:
        data["unmatched_words"] = list(answer.unmatched)
    lines = [*_verdict(answer), *map(_line, hits)]
    if misses:
        data["near_misses"] = misses
        lines += ["Near misses:", *(_line({**miss, "reason": ""}) for miss in misses)]
    if answer.total > len(hits):
        lines.append(f"{len(hits)} of {answer.total} shown; limit up to {MOST_RESULTS}.")
    if answer.hint:
        lines.append(answer.hint)
    if types:
        data["types"] = types
        lines.append(types)
    return result("\n".join(lines), data)


def _verdict(answer: LocalAnswer) -> list[str]:
    """Before all else, and only where there is something to beware of."""
    if answer.good_match:
        return [] if answer.hits else ["Nothing reaches the threshold."]
    verdict = "No good match, the first is a guess." if answer.hits else "No good match."
    more = ", …" if len(answer.unmatched) > MOST_WORDS else ""
    words = ", ".join(answer.unmatched[:MOST_WORDS])
    return [f"{verdict} Matched nothing: {words}{more}." if words else verdict]


def described(items: Sequence[Item], unknown: Sequence[Unknown], types: str = "") -> CallResult:
    """With `types` the schemas are left out: the TypeScript says the same in fewer words."""
    tools = [_described(item, with_schemas=not types) for item in items]
    data: dict[str, object] = {"tools": tools}
    lines = [types] if types else [compact_json(tool) for tool in tools]
    if types:
        data["types"] = types
    if unknown:
        data["unknown"] = [{"tool": one.tool, "nearest": list(one.nearest)} for one in unknown]
        lines += [no_such_tool(one) for one in unknown]
    return result("\n".join(lines), data)


def no_such_tool(unknown: Unknown) -> str:
    advice = (
        f"Nearest: {', '.join(unknown.nearest)}." if unknown.nearest else "search_tools finds the ones there are."
    )
    return f"There is no tool {unknown.tool[:200]!r}. {advice}"


def failed(error: ToolscriptError) -> CallResult:
    return failed_with(f"{error.message}. {error.hint}" if error.hint else error.message)


def failed_with(text: str) -> CallResult:
    return CallResult(({"type": "text", "text": visible(text)},), is_error=True)


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def one_line(text: str) -> str:
    """The text in one line, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= LONGEST_DESCRIPTION:
        return line
    return line[:LONGEST_DESCRIPTION].rsplit(" ", 1)[0].rstrip(",;:. ") + " …"


def result(text: str, data: JsonObject) -> CallResult:
    """Names and texts of servers stand in it, and what was asked for: whoever reads it sees all there is."""
    return CallResult(({"type": "text", "text": visible(text)},), visible_json(data))


def _hit(hit: LocalHit, with_schema: bool) -> dict[str, object]:
    item = hit.item
    entry: dict[str, object] = {
        "tool": tool_id(item.server, item.name),
        "confidence": round(hit.confidence, 2),
        "description": one_line(item.description),
        "reason": hit.reason,
    }
    if with_schema and item.input_schema is not None:
        entry["input_schema"] = item.input_schema
    return entry


def _line(hit: JsonObject) -> str:
    reason = f" ({hit['reason']})" if hit["reason"] else ""
    line = f"{hit['tool']} {hit['confidence']:.2f}: {hit['description']}{reason}"
    return f"{line}\n  {compact_json(hit['input_schema'])}" if "input_schema" in hit else line


def _described(item: Item, *, with_schemas: bool) -> dict[str, object]:
    parts: dict[str, object] = {"annotations": item.annotations}
    if with_schemas:
        parts = {"input_schema": item.input_schema, "output_schema": item.output_schema, **parts}
    known = {name: part for name, part in parts.items() if part is not None}
    return {"tool": tool_id(item.server, item.name), "description": item.description, **known}
