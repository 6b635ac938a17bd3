"""The catalog and the dirty set on PostgreSQL."""

from toolscript.adapters.postgres.catalog import PostgresCatalog
from toolscript.adapters.postgres.dirty_set import PostgresDirtySet
from toolscript.adapters.postgres.pool import Pool, open_pool
from toolscript.adapters.postgres.schema import downgrade, require_current_schema, upgrade

__all__ = [
    "Pool",
    "PostgresCatalog",
    "PostgresDirtySet",
    "downgrade",
    "open_pool",
    "require_current_schema",
    "upgrade",
]
