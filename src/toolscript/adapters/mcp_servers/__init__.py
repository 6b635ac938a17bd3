"""MCP servers over stdio, Streamable HTTP and the older SSE, each with a connection that is kept up."""

from toolscript.adapters.mcp_servers.pace import Pace
from toolscript.adapters.mcp_servers.servers import McpServers

__all__ = ["McpServers", "Pace"]
