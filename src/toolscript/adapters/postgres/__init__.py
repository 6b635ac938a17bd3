"""The catalog and the dirty set on PostgreSQL."""

from toolscript.adapters.postgres.catalog import PostgresCatalog
from toolscript.adapters.postgres.dirty_set import PostgresDirtySet
from toolscript.adapters.postgres.pool import Pool, open_pool
from toolscript.adapters.postgres.schema import require_current_schema

__all__ = [
    "Pool",
    "PostgresCatalog",
    "PostgresDirtySet",
    "open_pool",
    "require_current_schema",
]
