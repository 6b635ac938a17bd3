"""The gateway's own MCP server: its three tools and their results."""
