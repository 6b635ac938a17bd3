"""Documents of many tenants: upload, search, export and erasure."""
