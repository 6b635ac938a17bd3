"""Shared parts of the MCP servers: endpoint, arguments, answers and tool definitions."""
