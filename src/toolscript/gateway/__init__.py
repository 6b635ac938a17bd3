"""The gateway: finds and calls the tools of one person's MCP servers."""
