"""A server that has everything the MCP conformance suite asks for."""
