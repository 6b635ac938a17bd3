"""Documents over HTTP: /search and /api/v1/documents."""
