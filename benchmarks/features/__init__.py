"""What MCP servers offer to a client directly, and through a gateway."""
