"""TypeScript for tools: their schemas as types, and a module that calls them."""
