"""What a model reads of a search and of a description: short text, and the same facts as data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolscript.core.items import SEPARATOR, Item, tool_id
from toolscript.core.mcp.answers import MAX_WORDS, compact_json, one_line, result
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import visible
from toolscript.gateway.json import answer_to_json, item_to_json
from toolscript.gateway.mcp.definitions import DESCRIBE, MAX_RESULTS, SHOWN_ANSWER, SHOWN_HIT, SHOWN_ITEM
from toolscript.gateway.mcp.entry_tools import use_of
from toolscript.gateway.mcp.wording import for_agent
from toolscript.gateway.model import EXCLUDES, LocalAnswer, LocalStep
from toolscript.gateway.rules import ToolRisk

# How much of an error is searched for blame, and the words in which servers put it.
MAX_BLAME, MAX_SCHEMA = 2_000, 4_000
_BLAME = re.compile(
    r"-32602|invalid (?:argument|param|input)|(?:input|argument|params?) validation|validation error"
    r"|missing required|required (?:argument|param|property|field)|unexpected (?:keyword )?argument",
    re.IGNORECASE,
)
REPLACED_BY_TYPES = ("input_schema", "output_schema")


@dataclass(frozen=True)
class Unknown:
    """An unknown tool name, and the nearest known names; or why the tool is held."""

    tool: str
    nearest: tuple[str, ...] = ()
    held: str = ""


def found(answer: LocalAnswer, *, with_schemas: bool, types: str = "") -> CallResult:
    # Each tool is described once, also one of several steps.
    misses = () if answer.all_hits else answer.near_misses
    every = replace(answer, hits=answer.all_hits, near_misses=misses, hint=for_agent(answer.hint))
    data = _renamed(SHOWN_ANSWER, {"hint": "", **answer_to_json(every, explain=True, schemas=with_schemas)})
    hits = [{**_hit(hit), **use_of(known.item)} for hit, known in zip(data["results"], every.hits, strict=True)]
    guesses = [
        {**_hit(hit), **use_of(known.item)}
        for hit, known in zip(data.get("near_misses", ()), every.near_misses, strict=True)
    ]
    data["results"] = hits
    if answer.good_match:
        data.pop("unmatched_words", None)
    lines = [*_verdict(answer), *map(_line, hits)]
    if answer.steps:
        data["steps"] = [_step(step) for step in answer.steps]
        lines += ["Steps:", *map(_step_line, data["steps"])]
    if guesses:
        data["near_misses"] = guesses
        nearest = "The nearest:" if answer.is_below_threshold else "The nearest, which are guesses:"
        lines += [nearest, *map(_line, guesses)]
    if answer.total > len(hits):
        lines.append(f"{len(hits)} of {answer.total} shown; limit up to {MAX_RESULTS}.")
    if every.hint:
        lines.append(every.hint)
    if types:
        data["types"] = types
        lines.append(types)
    return result("\n".join(lines), data)


def _step(step: LocalStep) -> dict[str, Any]:
    names, guesses = (
        [tool_id(hit.item.server, hit.item.name) for hit in hits] for hits in (step.hits, step.near_misses)
    )
    step_shown = {"query": step.query, "good_match": step.good_match, "tools": names}
    return {**step_shown, "near_misses": guesses} if guesses else step_shown


def _step_line(step: Mapping[str, Any]) -> str:
    names = ", ".join(step["tools"])
    if not names:
        guesses = ", ".join(step.get("near_misses", ()))
        names = f"nothing fits{guesses and f'; guesses: {guesses}'}"
    guess = "" if step["good_match"] or not step["tools"] else " (no good match)"
    return f"- {one_line(step['query'])}: {names}{guess}"


def _verdict(answer: LocalAnswer) -> list[str]:
    """Return the verdict line, only if there is no good match or nothing reaches the threshold."""
    if answer.good_match or answer.is_below_threshold:
        return [] if answer.hits else ["Nothing reaches the threshold."]
    verdict = "No good match, the first is a guess." if answer.hits else "No good match."
    more = ", …" if len(answer.unmatched) > MAX_WORDS else ""
    words = ", ".join(answer.unmatched[:MAX_WORDS])
    return [f"{verdict} Matched nothing: {words}{more}." if words else verdict]


def described(items: Sequence[Item], unknown: Sequence[Unknown], types: str = "") -> CallResult:
    """With `types` the schemas are omitted: the TypeScript is equivalent and shorter."""
    names = {name: SHOWN_ITEM[name] for name in SHOWN_ITEM if not types or name not in REPLACED_BY_TYPES}
    tools = [_renamed(names, item_to_json(item, schemas=True)) for item in items]
    data: dict[str, object] = {"tools": tools}
    lines = [types] if types else [compact_json(tool) for tool in tools]
    if types:
        data["types"] = types
    if unknown:
        data["unknown"] = [{"tool": entry.tool, "nearest": list(entry.nearest)} for entry in unknown]
        lines += [no_such_tool(entry) for entry in unknown]
    return result("\n".join(lines), data)


def no_such_tool(unknown: Unknown) -> str:
    if unknown.held:
        return unknown.held
    same = [name for name in unknown.nearest if name.endswith(f"{SEPARATOR}{unknown.tool}")]
    if len(same) > 1 and SEPARATOR not in unknown.tool:
        return f"Several servers have a tool {unknown.tool[:200]!r}. Name one: {', '.join(same)}."
    advice = (
        f"Nearest: {', '.join(unknown.nearest)}." if unknown.nearest else "search_tools finds the ones there are."
    )
    return f"There is no tool {unknown.tool[:200]!r}. {advice}"


def excluded_note(hint: str) -> str:
    """Return what a hint says of a tool that the config excludes."""
    return next(for_agent(note) for note in hint.split("; ") if EXCLUDES in note)


def blames_arguments(result: CallResult) -> bool:
    """Return whether a tool reports an error, and says that it is the arguments."""
    if not result.is_error:
        return False
    start = " ".join(str(block.get("text", ""))[:MAX_BLAME] for block in result.content[:3])
    return _BLAME.search(start) is not None


def with_schema(result: CallResult, schema: object) -> CallResult:
    """Return a failure with the arguments that its tool takes, so that the next call can be right."""
    if not isinstance(schema, Mapping):
        return result
    text = visible(compact_json(schema))
    if len(text) > MAX_SCHEMA:
        text = f"{text[:MAX_SCHEMA]}… ({DESCRIBE} shows all of it)"
    block = {"type": "text", "text": f"The arguments that it takes: {text}"}
    return CallResult((*result.content, block), result.structured_content, result.is_error)


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    fields = _renamed(SHOWN_HIT, hit)
    risk = ToolRisk.from_json(hit["risk"]).shown_in_results if hit.get("risk") else ""
    shown = {"confidence": round(hit["confidence"], 2), "description": one_line(hit["description"])}
    return {**fields, **shown, **({"risk": risk} if risk else {})}


def _call(hit: Mapping[str, Any]) -> str:
    """Return the tool with its arguments: `server__tool(path, head?)`."""
    name, signature = str(hit["tool"]), str(hit.get("signature", ""))
    own_name = name.partition(SEPARATOR)[2]
    return name + (signature.removeprefix(own_name) if signature.startswith(f"{own_name}(") else "")


def _also(also: Sequence[str], paths: Mapping[str, str], tool: str) -> str:
    """Return the twins of a tool, and what tells all of them apart."""

    def named(name: str) -> str:
        path = paths.get(name.partition(SEPARATOR)[0])
        return f"{name} for {one_line(path)}" if path else name

    own = paths.get(tool.partition(SEPARATOR)[0])
    return f" [{f'for {one_line(own)}; ' if own else ''}also: {', '.join(map(named, also))}]" if also else ""


def _renamed(names: Mapping[str, str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value, under their MCP names."""
    return {name: data[full] for name, full in names.items() if data.get(full) is not None}


def _line(hit: Mapping[str, Any]) -> str:
    reason = f" ({hit['reason']})" if hit["reason"] else ""
    deprecated = " [deprecated]" if hit.get("deprecated") else ""
    also = _also(hit.get("also", ()), hit.get("paths", {}), str(hit["tool"]))
    risk = f" [{hit['risk']}]" if "risk" in hit else ""
    use = f" [{hit['use']}]" if "use" in hit else ""
    line = f"{_call(hit)} {hit['confidence']:.2f}: {hit['description']}{reason}{deprecated}{also}{risk}{use}"
    return f"{line}\n  {compact_json(hit['input_schema'])}" if "input_schema" in hit else line
