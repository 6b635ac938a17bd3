"""Speaks MCP for the service's tools. Who asks stands in the request: the guard has put it there."""

from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams, Tool

from toolscript.model.tenancy import Visitor
from toolscript.surfaces.mcp.endpoint import HOUR_MS, Context, Described, server_of_tools, wire_answer
from toolscript.surfaces.mcp_service.parts import ERROR, REFUSED
from toolscript.surfaces.mcp_service.tools import ServiceTools, call

DESCRIPTION = "Answers questions from a library, finds tools in a catalog, and searches a tenant's documents."


def create_service_server(tools: ServiceTools, version: str) -> Server[Any]:
    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        listed = [Tool.model_validate(tool.definition) for tool in tools.of(visitor_in(context))]
        return ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        visitor = visitor_in(context)
        tool = tools.find(params.name, visitor)
        if tool is None:
            _became(context, REFUSED)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        try:
            answer = await wire_answer(call(tool, visitor, params.arguments or {}), context.protocol_version)
        except MCPError:
            _became(context, REFUSED)
            raise
        if answer["isError"]:
            _became(context, ERROR)
        return answer

    # Which tools there are depends on who asks: nobody keeps the list for others.
    listing = CacheHint(HOUR_MS, "private")
    return server_of_tools(Described(version, DESCRIPTION, tools.instructions), list_tools, call_tool, listing)


def _became(context: Context, outcome: str) -> None:
    """For the guard: an answer that says what went wrong is one as any other to HTTP."""
    request: Any = context.request
    request.state.outcome = outcome


def visitor_in(context: Context) -> Visitor:
    request: Any = context.request
    visitor: Visitor = request.state.visitor
    return visitor
