"""The MCP server of the gateway: its tools, their arguments and results."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolscript.core.errors import Forbidden, NotFound, ToolscriptError
from toolscript.core.items import SEPARATOR, Item, ItemKind, JsonObject, split_tool_id, tool_id
from toolscript.core.mcp.answers import MAX_WORDS, answered, compact_json, failed, failed_with, one_line, result
from toolscript.core.mcp.arguments import one_of, require_known, share, text, texts, whole, wrong
from toolscript.core.mcp.endpoint import (
    HOUR_MS,
    Context,
    Described,
    ToolServer,
    client_of,
    create_tool_server,
    wire_answer,
    wire_result,
)
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import readable
from toolscript.gateway.approvals import HELD, for_agents, held_message
from toolscript.gateway.callers import ITSELF, CallTerms, client_is, current_terms, on_terms
from toolscript.gateway.json import answer_to_json, item_to_json
from toolscript.gateway.mcp.asking import (
    Questions,
    can_be_asked,
    is_allowed_by_person,
    message_of,
    question_result,
)
from toolscript.gateway.mcp.definitions import (
    CALL,
    CALL_DESTRUCTIVE,
    DEFAULT_LIMIT,
    DESCRIBE,
    MAX_DESCRIBED,
    MAX_RESULTS,
    SEARCH,
    SHOWN_ANSWER,
    SHOWN_HIT,
    SHOWN_ITEM,
    definitions_of_tools,
    instructions,
)
from toolscript.gateway.mcp.entry_handlers import add_entry_handlers
from toolscript.gateway.mcp.entry_tools import EntryTools, use_of
from toolscript.gateway.mcp.large_results import READ, LargeResults
from toolscript.gateway.mcp.parked import Relays
from toolscript.gateway.mcp.session_use import SessionUsage
from toolscript.gateway.model import DEFAULT_THRESHOLD, Gateway, LocalAnswer, LocalQuery, LocalStep
from toolscript.gateway.rules import CONFIRMATION, MAX_RISK, Risk, ToolRisk

NEAREST = 3


@dataclass(frozen=True)
class SearchArguments:
    query: LocalQuery
    detail: str


@dataclass(frozen=True)
class DescribeArguments:
    tools: tuple[str, ...]
    as_types: bool


@dataclass(frozen=True)
class CallArguments:
    tool: str
    arguments: JsonObject


def parse_search(arguments: JsonObject) -> SearchArguments:
    require_known(SEARCH, arguments, ("query", "limit", "threshold", "detail", "kind"))
    limit = whole(arguments, "limit", DEFAULT_LIMIT, 1, MAX_RESULTS)
    threshold = share(arguments, "threshold", DEFAULT_THRESHOLD)
    detail = one_of(arguments, "detail", ("compact", "types", "schema"))
    kind = ItemKind(one_of(arguments, "kind", (*ItemKind,)))
    return SearchArguments(LocalQuery(text(arguments, "query"), limit, threshold, kind), detail)


def parse_describe(arguments: JsonObject) -> DescribeArguments:
    require_known(DESCRIBE, arguments, ("tool", "tools", "format"))
    as_types = one_of(arguments, "format", ("schema", "types")) == "types"
    if ("tool" in arguments) == ("tools" in arguments):
        raise wrong("tool", "must be given, or `tools`, and not both")
    names = [text(arguments, "tool")] if "tool" in arguments else texts(arguments, "tools", MAX_DESCRIBED)
    return DescribeArguments(tuple(dict.fromkeys(full_name(name) for name in names)), as_types)


def parse_call(arguments: JsonObject) -> CallArguments:
    require_known(CALL, arguments, ("tool", "arguments"))
    return CallArguments(full_name(text(arguments, "tool")), _arguments(arguments.get("arguments")))


def full_name(name: str) -> str:
    """Remove a client's prefix from a name. A name without a server is kept, as it may be unique."""
    return tool_id(*split_tool_id(name)) if SEPARATOR in name else readable(name)


def _arguments(value: object) -> JsonObject:
    # Models sometimes pass the object as a JSON string.
    parsed = _from_json(value) if isinstance(value, str) else value
    if parsed is None:
        return {}
    if not isinstance(parsed, Mapping):
        raise wrong("arguments", "must be an object")
    return parsed


def _from_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class Unknown:
    """An unknown tool name, and the nearest known names; or why the tool is held."""

    tool: str
    nearest: tuple[str, ...] = ()
    held: str = ""


def found(answer: LocalAnswer, *, with_schemas: bool, types: str = "") -> CallResult:
    # Each tool is described once, also one of several steps.
    every = replace(answer, hits=answer.all_hits)
    data = _renamed(SHOWN_ANSWER, {"hint": "", **answer_to_json(every, explain=True, schemas=with_schemas)})
    hits = [{**_hit(hit), **use_of(known.item)} for hit, known in zip(data["results"], every.hits, strict=True)]
    misses = list(map(_hit, data.get("near_misses", ())))
    data["results"] = hits
    if answer.good_match:
        data.pop("unmatched_words", None)
    lines = [*_verdict(answer), *map(_line, hits)]
    if answer.steps:
        data["steps"] = [_step(step) for step in answer.steps]
        lines += ["Steps:", *map(_step_line, data["steps"])]
    if misses:
        data["near_misses"] = misses
        lines += ["Near misses:", *(_line({**miss, "reason": ""}) for miss in misses)]
    if answer.total > len(hits):
        lines.append(f"{len(hits)} of {answer.total} shown; limit up to {MAX_RESULTS}.")
    if answer.hint:
        lines.append(answer.hint)
    if types:
        data["types"] = types
        lines.append(types)
    return result("\n".join(lines), data)


def _step(step: LocalStep) -> dict[str, Any]:
    names = [tool_id(hit.item.server, hit.item.name) for hit in step.hits]
    return {"query": step.query, "good_match": step.good_match, "tools": names}


def _step_line(step: Mapping[str, Any]) -> str:
    guess = "" if step["good_match"] or not step["tools"] else " (no good match)"
    return f"- {one_line(step['query'])}: {', '.join(step['tools']) or 'nothing fits'}{guess}"


def _verdict(answer: LocalAnswer) -> list[str]:
    """Return the verdict line, only if there is no good match or nothing reaches the threshold."""
    if answer.good_match or answer.is_below_threshold:
        return [] if answer.hits else ["Nothing reaches the threshold."]
    verdict = "No good match, the first is a guess." if answer.hits else "No good match."
    more = ", …" if len(answer.unmatched) > MAX_WORDS else ""
    words = ", ".join(answer.unmatched[:MAX_WORDS])
    return [f"{verdict} Matched nothing: {words}{more}." if words else verdict]


REPLACED_BY_TYPES = ("input_schema", "output_schema")


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
    advice = (
        f"Nearest: {', '.join(unknown.nearest)}." if unknown.nearest else "search_tools finds the ones there are."
    )
    return f"There is no tool {unknown.tool[:200]!r}. {advice}"


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    fields = _renamed(SHOWN_HIT, hit)
    risk = ToolRisk.from_json(hit["risk"]).shown_in_results if hit.get("risk") else ""
    shown = {"confidence": round(hit["confidence"], 2), "description": one_line(hit["description"])}
    return {**fields, **shown, **({"risk": risk} if risk else {})}


def _renamed(names: Mapping[str, str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value, under their MCP names."""
    return {name: data[full] for name, full in names.items() if data.get(full) is not None}


def _line(hit: JsonObject) -> str:
    reason = f" ({hit['reason']})" if hit["reason"] else ""
    risk = f" [{hit['risk']}]" if "risk" in hit else ""
    use = f" [{hit['use']}]" if "use" in hit else ""
    line = f"{hit['tool']} {hit['confidence']:.2f}: {hit['description']}{reason}{risk}{use}"
    return f"{line}\n  {compact_json(hit['input_schema'])}" if "input_schema" in hit else line


class MetaTools:
    """Raises InvalidRequest for invalid arguments, and Forbidden where a person has to confirm a call; any other
    failure is a result with `isError`. With `split`, destructive tools have a meta-tool of their own.
    """

    def __init__(self, gateway: Gateway, *, split: bool = False) -> None:
        self._split = split
        self._gateway = gateway
        self._results = LargeResults()
        self._by_name: dict[str, Callable[[JsonObject], Awaitable[CallResult]]] = {
            SEARCH: self._search,
            DESCRIBE: self._describe,
            CALL: self._call,
        }
        if split:
            self._by_name[CALL_DESTRUCTIVE] = self._call_destructive
        self._by_name.update(EntryTools(gateway, self._results.fitting).by_name)

    def has(self, name: str) -> bool:
        return name in self._by_name

    async def call(self, name: str, arguments: JsonObject) -> CallResult:
        return await self._by_name[name](arguments)

    async def _search(self, arguments: JsonObject) -> CallResult:
        search_arguments = parse_search(arguments)

        async def answer() -> CallResult:
            answer = await self._gateway.search(search_arguments.query)
            hits = answer.all_hits or answer.near_misses
            types = ""
            if search_arguments.detail == "types" and hits and search_arguments.query.kind is ItemKind.TOOL:
                ids = tuple(tool_id(hit.item.server, hit.item.name) for hit in hits)
                types = await self._gateway.typescript(ids, compact=True)
            return found(answer, with_schemas=search_arguments.detail == "schema", types=types)

        return await answered(answer)

    async def _describe(self, arguments: JsonObject) -> CallResult:
        describe_arguments = parse_describe(arguments)
        return await answered(lambda: self._described(describe_arguments))

    async def _described(self, arguments: DescribeArguments) -> CallResult:
        names = await self._full_names(arguments.tools)
        items = await self._tools(names)
        absent = [name for name in names if name not in items]
        held = await self._held(absent) if absent else {}
        if not items and held:
            return failed_with("\n".join(held.values()))
        unknown = [await self._unknown(name, held.get(name, "")) for name in absent]
        if not items:
            return failed_with("\n".join(no_such_tool(entry) for entry in unknown))
        types = await self._gateway.typescript(tuple(items), compact=True) if arguments.as_types else ""
        return described(list(items.values()), unknown, types)

    async def _call(self, arguments: JsonObject) -> CallResult:
        limit = Risk.WRITE.value if self._split else ""
        with on_terms(current_terms()._replace(max_risk=limit)):
            return await self._call_destructive(arguments)

    async def _call_destructive(self, arguments: JsonObject) -> CallResult:
        call_arguments = parse_call(arguments)
        return await answered(lambda: self._called(call_arguments), but_for=(Forbidden,))

    async def _called(self, arguments: CallArguments) -> CallResult:
        if arguments.tool == READ:
            return self._results.read(arguments.arguments)
        [tool] = await self._full_names([arguments.tool])
        try:
            result = await self._gateway.call(tool, arguments.arguments)
            # On a thread: megabytes take a while, and other requests must not wait.
            return await asyncio.to_thread(self._results.fitting, result)
        except NotFound:
            return failed_with(no_such_tool(await self._unknown(tool)))
        except Forbidden as refusal:
            if CONFIRMATION in refusal.details:
                raise
            if HELD in refusal.details:
                return failed_with(for_agents(refusal.message))
            if MAX_RISK in refusal.details:
                return failed_with(f"{tool[:200]} counts as destructive: call it with {CALL_DESTRUCTIVE}.")
            return failed(refusal)

    async def _full_names(self, names: Sequence[str]) -> list[str]:
        """Complete names without a server, where only one server has such a tool."""
        return [name if SEPARATOR in name else await self._gateway.tool_named(name) or name for name in names]

    async def _tools(self, names: Sequence[str]) -> dict[str, Item]:
        """Return the tools of these names, in the order of the names."""
        listed = await self._gateway.items(tuple(names))
        tools = {tool_id(item.server, item.name): item for item in listed if item.kind is ItemKind.TOOL}
        return {name: tools[name] for name in names if name in tools}

    async def _held(self, names: Sequence[str]) -> dict[str, str]:
        """Return what to say of the tools that are held, by their names."""
        held = {review.tool: review for review in await self._gateway.reviews() if review.held}
        return {name: for_agents(held_message(held[name])) for name in names if name in held}

    async def _unknown(self, name: str, held: str = "") -> Unknown:
        if held:
            return Unknown(name, held=held)
        try:
            words = " ".join(split_tool_id(name))
            with client_is(ITSELF):
                answer = await self._gateway.search(LocalQuery(words[:200], NEAREST, 0.0))
        except ToolscriptError:
            return Unknown(name)
        hits = (answer.hits or answer.near_misses)[:NEAREST]
        return Unknown(name, tuple(tool_id(hit.item.server, hit.item.name) for hit in hits))


def create_mcp_server(
    gateway: Gateway, version: str, usage: SessionUsage | None = None, *, split: bool = False
) -> ToolServer:
    """`split`: destructive tools have a meta-tool of their own, so that a client can allow the other one."""
    tools, questions, relays = MetaTools(gateway, split=split), Questions(), Relays()
    definitions = definitions_of_tools(split=split)
    listing = ListToolsResult.model_validate({"tools": definitions})

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return listing

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        if not tools.has(params.name):
            message = (
                f"Unknown tool: {params.name[:200]}. Tools that {definitions[0]['name']} finds go through {CALL}."
            )
            raise MCPError(INVALID_PARAMS, message)
        arguments = params.arguments or {}

        async def answer() -> CallResult:
            result = await tools.call(params.name, arguments)
            if usage is not None:
                usage.note(params.name, arguments, result)
            return result

        async def call(confirmed: str) -> dict[str, Any]:
            with on_terms(CallTerms(confirmed)):
                return await relays.answer(context, lambda: wire_answer(answer(), context.protocol_version))

        with client_is(client_of(context)):
            return await answered_by_person(
                context, params, questions, call, lambda: parse_call(arguments).arguments
            )

    described = Described(
        version, "Finds and calls the right tool among all that your MCP servers have.", instructions(split=split)
    )
    server = create_tool_server(described, list_tools, call_tool, listing=CacheHint(HOUR_MS, "public"))
    add_entry_handlers(server, gateway, relays)
    return server


async def answered_by_person(
    context: Context,
    params: CallToolRequestParams,
    questions: Questions,
    call: Callable[[str], Awaitable[dict[str, Any]]],
    arguments: Callable[[], JsonObject],
) -> dict[str, Any]:
    """Make a call, of which `call` gets the tool that a person confirmed; ask the person where a rule wants it.

    `arguments` are those of the tool, which the person is shown.
    """
    tool, is_allowed = questions.answered(params)
    if tool and not is_allowed:
        return wire_result(_declined(tool), context.protocol_version)
    try:
        return await call(tool)
    except Forbidden as refusal:
        if not can_be_asked(context):
            return wire_result(failed(refusal), context.protocol_version)
        tool = str(refusal.details["tool"])
        message = message_of(refusal, arguments())
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return question_result(message, questions.add(tool, params))
    if not await is_allowed_by_person(context, message):
        return wire_result(_declined(tool), context.protocol_version)
    return await call(tool)


def _declined(tool: str) -> CallResult:
    return failed_with(f"The person did not allow this call of {tool[:200]}. Do without it, or ask them.")
