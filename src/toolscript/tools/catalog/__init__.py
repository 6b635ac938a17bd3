"""How items come into the catalog: from files and MCP servers, and as jobs."""
