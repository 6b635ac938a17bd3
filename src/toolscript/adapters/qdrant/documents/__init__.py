"""Documents of all tenants in one collection, over gRPC."""
