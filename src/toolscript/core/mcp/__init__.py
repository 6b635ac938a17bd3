"""What every MCP server of ours shares: the endpoint, arguments, answers and tool definitions."""
