"""Tool search, skills and the catalog over HTTP."""
