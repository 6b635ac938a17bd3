"""PostgreSQL: the connection pool and the migrations of the schema."""
