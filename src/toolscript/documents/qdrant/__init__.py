"""Documents in Qdrant: collections, tenants, filters and shards."""
