"""The catalog, its changes, the dirty set, skills, sync jobs and what is kept of tenants on PostgreSQL."""

from toolscript.adapters.postgres.assignments import PostgresAssignments
from toolscript.adapters.postgres.catalog import PostgresCatalog
from toolscript.adapters.postgres.catalog_contents import PostgresCatalogContents
from toolscript.adapters.postgres.changes import PostgresItemChanges
from toolscript.adapters.postgres.dirty_set import PostgresDirtySet
from toolscript.adapters.postgres.document_versions import PostgresDocumentVersions
from toolscript.adapters.postgres.jobs import PostgresSyncJobs
from toolscript.adapters.postgres.pool import Pool, open_pool
from toolscript.adapters.postgres.request_budget import PostgresRequestBudget
from toolscript.adapters.postgres.schema import require_current_schema
from toolscript.adapters.postgres.skill_vectors import PostgresSkillVectors
from toolscript.adapters.postgres.suggestions import PostgresSuggestions
from toolscript.adapters.postgres.taxonomy import PostgresTaxonomy
from toolscript.adapters.postgres.tenant_turns import alone_with
from toolscript.adapters.postgres.tenants import PostgresTenants

__all__ = [
    "Pool",
    "PostgresAssignments",
    "PostgresCatalog",
    "PostgresCatalogContents",
    "PostgresDirtySet",
    "PostgresDocumentVersions",
    "PostgresItemChanges",
    "PostgresRequestBudget",
    "PostgresSkillVectors",
    "PostgresSuggestions",
    "PostgresSyncJobs",
    "PostgresTaxonomy",
    "PostgresTenants",
    "alone_with",
    "open_pool",
    "require_current_schema",
]
