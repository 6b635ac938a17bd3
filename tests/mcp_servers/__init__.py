"""Small MCP servers for tests, good and bad. Most speak JSON-RPC by hand: importing the SDK takes seconds."""
