"""Sign-in to a real protected MCP server, by a real authorization server."""
