"""The library as MCP tools."""
