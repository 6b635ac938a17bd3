"""The MCP server that hands the tools of all servers through, for clients that search them by themselves."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, PaginatedRequestParams

from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.errors import Forbidden, InvalidRequest, NotFound, ServerRejected, ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import compact_json, failed_with
from toolscript.core.mcp.endpoint import Context, Described, ToolServer, create_tool_server, wire_answer
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import visible_json
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.gateway.approvals import for_agents, held_message
from toolscript.gateway.callers import CallTerms, client_is, on_terms
from toolscript.gateway.listed_tools import listed_name
from toolscript.gateway.mcp.asking import Questions
from toolscript.gateway.mcp.definitions import READ_RESULT, READ_RESULT_TOOL
from toolscript.gateway.mcp.entry_handlers import add_entry_handlers, wire_error
from toolscript.gateway.mcp.large_results import MAX_BYTES, LargeResults, text_says_all
from toolscript.gateway.mcp.parked import Relays
from toolscript.gateway.mcp.relaying import name_of
from toolscript.gateway.mcp.tools import answered_by_person
from toolscript.gateway.mcp.valid_definitions import valid_definitions
from toolscript.gateway.mcp.wording import answered, failed, refused
from toolscript.gateway.model import PROMPTS, RESOURCES, TOOLS, DirectGateway
from toolscript.gateway.rules import CONFIRMATION

LISTED_MS = 60 * 1000
INSTRUCTIONS = (
    "The tools of many servers, each under the name server__tool. "
    f"{READ_RESULT} reads on in a result that was too long."
)
FindSchema = Callable[[str], Mapping[str, Any] | None]

logger = logging.getLogger("toolscript.mcp")


class DirectTools:
    """The tools of a gateway under the names that are listed.

    With `results`, long ones are cut, and one more tool reads on in them; without, they are handed on whole.
    """

    def __init__(self, gateway: DirectGateway, results: LargeResults | None) -> None:
        self._gateway = gateway
        self._results = results

    async def page(self, cursor: str, protocol: str) -> dict[str, Any]:
        """Return one page. The first begins with the tool that reads on, where there is one."""
        try:
            after = decode_cursor(cursor, "")
        except InvalidRequest as error:
            raise MCPError(INVALID_PARAMS, error.message) from None
        page = await self._gateway.listed_tools(after)
        first = [READ_RESULT_TOOL] if self._results and not after else []
        tools = valid_definitions("tools/list", "tools", [*first, *page.tools], protocol)
        following = {"nextCursor": encode_cursor(page.following)} if page.following else {}
        return {"tools": tools, "resultType": "complete", **following}

    async def find(self, name: str) -> str:
        """Return the `server__tool` of a name. Raise where there is none."""
        if self._results and name == READ_RESULT:
            return name
        tool = await self._gateway.tool_named(name)
        if not tool and not await self._why_held(name):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:200]}")
        return tool

    async def call(self, name: str, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool. Raise Forbidden where a person has to confirm it, and MCPError where its server does."""
        results = self._results
        if results and tool == READ_RESULT:
            return await answered(lambda: OF_SERVERS.run(lambda: results.read(arguments)))
        try:
            return await answered(lambda: self._called(name, tool, arguments), but_for=(Forbidden, ServerRejected))
        except ServerRejected as error:
            if "code" in error.details:
                raise wire_error(error) from error
            return failed(error)

    async def _called(self, name: str, tool: str, arguments: JsonObject) -> CallResult:
        if not tool:
            return failed_with(await self._why_held(name))
        try:
            result = await self._gateway.call(tool, arguments)
        except NotFound as error:
            return failed(error)
        except Forbidden as refusal:
            if CONFIRMATION in refusal.details:
                raise
            return refused(refusal)
        results = self._results
        if results is None:
            return result
        # On a thread: megabytes take a while, and other requests must not wait.
        fitted = await OF_SERVERS.run(lambda: _fitting(results, result))
        lacks_data = result.structured_content is not None and fitted.structured_content is None
        return _too_large(fitted) if lacks_data and await self._promises_data(tool) else fitted

    async def _promises_data(self, tool: str) -> bool:
        try:
            return any(item.output_schema is not None for item in await self._gateway.items((tool,)))
        except ToolscriptError:
            return True

    async def _why_held(self, name: str) -> str:
        """Return why a tool that is not offered is held; empty for any other name."""
        held = [review for review in await self._gateway.reviews() if review.held]
        for review in held:
            if name in (listed_name(review.server, review.name), review.name):
                return for_agents(held_message(review))
        return ""


def _fitting(results: LargeResults, result: CallResult) -> CallResult:
    """Cut a long result. Data that fits stays: clients refuse a result that lacks what its tool promises."""
    fitted = results.fitting(result)
    if result.structured_content is None or fitted.structured_content is not None:
        return fitted
    data = visible_json(result.structured_content)
    # The same in quotes is a little longer.
    if text_says_all(result) or len(compact_json(data)) <= MAX_BYTES:
        return replace(fitted, structured_content=data)
    return fitted


def _too_large(cut: CallResult) -> CallResult:
    """Return what is left as an error, of which clients demand no data."""
    text = "\n".join(["The call succeeded; its result is too large.", *_texts(cut)])
    others = [block for block in cut.content if block.get("type") != "text"]
    return CallResult([{"type": "text", "text": text}, *others], is_error=True)


def _texts(result: CallResult) -> list[str]:
    return [str(block.get("text")) for block in result.content if block.get("type") == "text"]


def create_direct_server(
    gateway: DirectGateway,
    version: str,
    find_schema: FindSchema = lambda _name: None,
    results: LargeResults | None = None,
) -> ToolServer:
    tools, questions, relays = DirectTools(gateway, results), Questions(), Relays()

    async def list_tools(context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        return await tools.page(params.cursor or "", context.protocol_version)

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        arguments = params.arguments or {}
        tool = await tools.find(params.name)

        async def call(confirmed: str) -> dict[str, Any]:
            with on_terms(CallTerms(confirmed)):
                return await relays.answer(
                    context,
                    lambda: wire_answer(tools.call(params.name, tool, arguments), context.protocol_version),
                )

        with client_is(name_of(context)):
            return await answered_by_person(context, params, questions, call, lambda: arguments)

    described = Described(version, "Hands the tools of your MCP servers through.", INSTRUCTIONS if results else "")
    hint = CacheHint(LISTED_MS, "private")
    server = create_tool_server(described, list_tools, call_tool, listing=hint, find_schema=find_schema)
    add_entry_handlers(server, gateway, relays, (TOOLS, PROMPTS, RESOURCES))
    return server
