"""Private Qdrant, PostgreSQL and MongoDB-wire servers for tests; see `scripts/engines --help`."""
