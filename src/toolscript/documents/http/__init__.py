"""Documents over HTTP: /search and /documents."""
