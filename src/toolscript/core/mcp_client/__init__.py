"""Connections to MCP servers: transports, listing, supervision and failures."""
