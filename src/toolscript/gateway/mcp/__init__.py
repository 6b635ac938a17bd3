"""The gateway's own MCP server: its tools and their results, and prompts and resources of all servers."""
