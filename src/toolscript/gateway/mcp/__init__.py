"""The gateway's own MCP server: its tools and their results."""
