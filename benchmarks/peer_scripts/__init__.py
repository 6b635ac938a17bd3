"""Programs that run in the environments of peers: each reads tools and queries, and writes ids."""
