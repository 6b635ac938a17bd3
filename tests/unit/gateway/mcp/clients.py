"""Clients of both protocol versions, on a server in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from toolscript.gateway.mcp.tools import create_mcp_server
from toolscript.gateway.model import McpGateway

MODERN = "2026-07-28"
LEGACY = "legacy"
MODES = (MODERN, LEGACY)


@asynccontextmanager
async def connected(gateway: McpGateway, mode: str = MODERN) -> AsyncIterator[Client]:
    async with Client(create_mcp_server(gateway, "1.2.3"), mode=mode) as client:
        yield client


async def call(gateway: McpGateway, name: str, arguments: dict[str, Any], mode: str = MODERN) -> CallToolResult:
    async with connected(gateway, mode) as client:
        return await client.call_tool(name, arguments)


def text_of(result: CallToolResult) -> str:
    """Return the text of an answer with one text block."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text
