"""The MCP server of the gateway: its tools, their arguments and results."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolscript.core.argument_checks import INPUT_SCHEMA
from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.errors import Forbidden, InvalidRequest, NotFound, ServerRejected, ToolscriptError
from toolscript.core.items import SEPARATOR, Item, ItemKind, JsonObject, split_tool_id, tool_id
from toolscript.core.mcp.answers import failed_with
from toolscript.core.mcp.arguments import one_of, require_known, share, text, texts, whole, wrong
from toolscript.core.mcp.endpoint import (
    Context,
    Described,
    ToolServer,
    create_tool_server,
    wire_answer,
    wire_result,
)
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import readable
from toolscript.gateway.approvals import for_agents, held_message
from toolscript.gateway.callers import CallTerms, by_itself, client_is, current_terms, on_terms
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
    DESCRIBE,
    MAX_DESCRIBED,
    MAX_RESULTS,
    READ_RESULT,
    SEARCH,
    definitions_of_tools,
    instructions,
)
from toolscript.gateway.mcp.entry_handlers import add_entry_handlers
from toolscript.gateway.mcp.entry_tools import EntryTools
from toolscript.gateway.mcp.large_results import READ, LargeResults
from toolscript.gateway.mcp.offered_servers import OfferedServers
from toolscript.gateway.mcp.parked import Relays
from toolscript.gateway.mcp.pipes import current_pipe, pipe_of, piped_by
from toolscript.gateway.mcp.relaying import name_of
from toolscript.gateway.mcp.shown import (
    Unknown,
    blames_arguments,
    described,
    excluded_note,
    found,
    no_such_tool,
    with_schema,
)
from toolscript.gateway.mcp.wording import answered, failed, in_agent_words, refused
from toolscript.gateway.model import (
    DEFAULT_LIMIT,
    DEFAULT_THRESHOLD,
    EXCLUDED,
    EXCLUDES,
    PROMPTS,
    RESOURCES,
    SERVERS,
    LocalAnswer,
    LocalQuery,
    McpGateway,
)
from toolscript.gateway.rules import CONFIRMATION, MAX_RISK, Risk
from toolscript.gateway.typescript.declarations import tool_declarations

DESCRIPTION = "Finds and calls the right tool among all that your MCP servers have."
NEAREST = 3
# The list changes with the servers, which not every client can be told.
LISTED_MS = 5 * 60 * 1000


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


class MetaTools:
    """Raises InvalidRequest for invalid arguments, and Forbidden where a person has to confirm a call; any other
    failure is a result with `isError`. With `split`, destructive tools have a meta-tool of their own.
    """

    def __init__(self, gateway: McpGateway, *, split: bool = False, results: LargeResults | None = None) -> None:
        self._split = split
        self._gateway = gateway
        self._results = results or LargeResults()
        self._by_name: dict[str, Callable[[JsonObject], Awaitable[CallResult]]] = {
            SEARCH: self._search,
            DESCRIBE: self._describe,
            CALL: self._call,
            READ_RESULT: self._read_result,
        }
        if split:
            self._by_name[CALL_DESTRUCTIVE] = self._call_destructive
        self._by_name.update(EntryTools(gateway, self._results.fitting).by_name)

    def has(self, name: str) -> bool:
        return name in self._by_name

    async def call(self, name: str, arguments: JsonObject) -> CallResult:
        try:
            return await self._by_name[name](arguments)
        except ToolscriptError as error:
            raise in_agent_words(error) from error

    async def _search(self, arguments: JsonObject) -> CallResult:
        search_arguments = parse_search(arguments)

        async def answer() -> CallResult:
            answer = await _searched(self._gateway, search_arguments.query)
            hits = answer.all_hits or answer.near_misses
            types = ""
            if search_arguments.detail == "types" and hits and search_arguments.query.kind is ItemKind.TOOL:
                types = await OF_SERVERS.run(lambda: tool_declarations([hit.item for hit in hits]))
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
        types = ""
        if arguments.as_types:
            types = await OF_SERVERS.run(lambda: tool_declarations([*items.values()]))
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
            return await OF_SERVERS.run(lambda: self._results.read(arguments.arguments))
        [tool] = await self._full_names([arguments.tool])
        try:
            result = await self._gateway.call(tool, arguments.arguments)
        except NotFound as error:
            is_known = EXCLUDED in error.details or SEPARATOR not in tool
            return failed(error) if is_known else failed_with(no_such_tool(await self._unknown(tool)))
        except Forbidden as refusal:
            return _refused(tool, refusal)
        except InvalidRequest as error:
            return with_schema(failed(error), error.details.get(INPUT_SCHEMA))
        except ServerRejected as error:
            is_about_arguments = error.details.get("code") == INVALID_PARAMS
            return with_schema(failed(error), await self._schema_of(tool) if is_about_arguments else None)
        if blames_arguments(result):
            result = with_schema(result, await self._schema_of(tool))
        # On a thread: megabytes take a while, and other requests must not wait.
        return await OF_SERVERS.run(lambda: self._results.fitting(result))

    async def _schema_of(self, tool: str) -> object:
        item = (await self._tools([tool])).get(tool)
        return item.input_schema if item else None

    async def _read_result(self, arguments: JsonObject) -> CallResult:
        return await answered(lambda: OF_SERVERS.run(lambda: self._results.read(arguments)))

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
            with by_itself():
                answer = await self._gateway.search(LocalQuery(name[:200], NEAREST, 0.0))
        except ToolscriptError:
            return Unknown(name)
        if EXCLUDES in answer.hint:
            return Unknown(name, held=excluded_note(answer.hint))
        hits = (answer.hits or answer.near_misses)[:NEAREST]
        return Unknown(name, tuple(tool_id(hit.item.server, hit.item.name) for hit in hits))


def create_mcp_server(
    gateway: McpGateway,
    version: str,
    *,
    split: bool = False,
    results: LargeResults | None = None,
) -> ToolServer:
    """`split`: destructive tools have a meta-tool of their own, so that a client can allow the other one."""
    tools, questions, relays = MetaTools(gateway, split=split, results=results), Questions(), Relays()
    offered = OfferedServers(gateway)

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        await offered.refresh()
        server.instructions = instructions(split=split, servers=offered.names)
        definitions = definitions_of_tools(split=split, servers=offered.names)
        return ListToolsResult.model_validate({"tools": definitions})

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        if not tools.has(params.name):
            message = f"Unknown tool: {params.name[:200]}. Tools that {SEARCH} finds go through {CALL}."
            raise MCPError(INVALID_PARAMS, message)
        arguments = params.arguments or {}

        async def answer() -> CallResult:
            with piped_by(pipe_of(context)):
                return await tools.call(params.name, arguments)

        async def call(confirmed: str) -> dict[str, Any]:
            with on_terms(CallTerms(confirmed)):
                return await relays.answer(context, lambda: wire_answer(answer(), context.protocol_version))

        with client_is(name_of(context)):
            return await answered_by_person(
                context, params, questions, call, lambda: parse_call(arguments).arguments
            )

    described = Described(version, DESCRIPTION, instructions(split=split, servers=offered.names))
    server = create_tool_server(described, list_tools, call_tool, listing=CacheHint(LISTED_MS, "private"))
    add_entry_handlers(server, gateway, relays, (SERVERS, PROMPTS, RESOURCES))
    return server


async def _searched(gateway: McpGateway, query: LocalQuery) -> LocalAnswer:
    """Search as the client's entry wants it, and say what it has to be told."""
    pipe = current_pipe()
    if pipe.search_type is not None and query.search_type is None:
        query = replace(query, search_type=pipe.search_type)
    answer = await gateway.search(query)
    hint = "; ".join(filter(None, (answer.hint, pipe.note)))
    return replace(answer, hint=hint) if pipe.note else answer


def _refused(tool: str, refusal: Forbidden) -> CallResult:
    """Return what a model reads of a refusal; raise one that a person may lift."""
    if CONFIRMATION in refusal.details:
        raise refusal
    if MAX_RISK in refusal.details:
        return failed_with(f"{tool[:200]} counts as destructive: call it with {CALL_DESTRUCTIVE}.")
    return refused(refusal)


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
    return await _called_if_allowed(context, tool, message, call)


async def _called_if_allowed(
    context: Context, tool: str, message: str, call: Callable[[str], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    if not await is_allowed_by_person(context, message):
        return wire_result(_declined(tool), context.protocol_version)
    try:
        return await call(tool)
    except Forbidden as refusal:
        # The rule, or the tool, changed while the person was asked.
        return wire_result(failed(refusal), context.protocol_version)


def _declined(tool: str) -> CallResult:
    return failed_with(f"The person did not allow this call of {tool[:200]}. Do without it, or ask them.")
