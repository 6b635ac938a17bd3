"""Tool search as MCP tools."""
