"""Speaks MCP in every version that clients use, for the gateway's three tools: over HTTP without sessions, and
over stdio. The service's tools (surfaces/mcp_service) are spoken for in the same way.
"""

from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams

from toolscript.core.mcp.endpoint import HOUR_MS, Context, Described, server_of_tools, wire_answer
from toolscript.gateway.mcp.definitions import CALL, DEFINITIONS, INSTRUCTIONS
from toolscript.gateway.mcp.tools import MetaTools
from toolscript.gateway.model import Gateway


def create_mcp_server(gateway: Gateway, version: str) -> Server[Any]:
    tools = MetaTools(gateway)
    listing = ListToolsResult.model_validate({"tools": DEFINITIONS})

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return listing

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        if not tools.has(params.name):
            message = (
                f"Unknown tool: {params.name[:200]}. Tools that {DEFINITIONS[0]['name']} finds go through {CALL}."
            )
            raise MCPError(INVALID_PARAMS, message)
        return await wire_answer(tools.call(params.name, params.arguments or {}), context.protocol_version)

    described = Described(
        version, "Finds and calls the right tool among all that your MCP servers have.", INSTRUCTIONS
    )
    return server_of_tools(described, list_tools, call_tool, listing=CacheHint(HOUR_MS, "public"))
