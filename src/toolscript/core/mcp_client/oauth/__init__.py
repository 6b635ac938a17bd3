"""Sign-in to remote MCP servers: OAuth 2.1 as a client."""
