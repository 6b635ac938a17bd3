"""Deterministic doubles of every port, in memory. They pass the same contract suites as the real ones."""

from toolscript.testing.assignments import MemoryAssignments
from toolscript.testing.callers import MemoryCallers
from toolscript.testing.catalog import MemoryCatalog
from toolscript.testing.catalog_contents import MemoryCatalogContents
from toolscript.testing.changes import MemoryItemChanges
from toolscript.testing.dirty_set import MemoryDirtySet
from toolscript.testing.document_versions import MemoryDocumentVersions
from toolscript.testing.documents import MemoryDocuments
from toolscript.testing.embedder import HashEmbedder
from toolscript.testing.index import MemoryIndexes
from toolscript.testing.jobs import MemorySyncJobs
from toolscript.testing.library import MemoryLibrary
from toolscript.testing.query_log import MemoryQueryLog
from toolscript.testing.request_budget import MemoryRequestBudget
from toolscript.testing.reranker import WordReranker
from toolscript.testing.skill_vectors import MemorySkillVectors
from toolscript.testing.spans import MemorySpans
from toolscript.testing.suggestions import MemorySuggestions
from toolscript.testing.taxonomy import MemoryTaxonomy
from toolscript.testing.tenants import MemoryTenants
from toolscript.testing.tool_servers import MemoryToolServers

__all__ = [
    "HashEmbedder",
    "MemoryAssignments",
    "MemoryCallers",
    "MemoryCatalog",
    "MemoryCatalogContents",
    "MemoryDirtySet",
    "MemoryDocumentVersions",
    "MemoryDocuments",
    "MemoryIndexes",
    "MemoryItemChanges",
    "MemoryLibrary",
    "MemoryQueryLog",
    "MemoryRequestBudget",
    "MemorySkillVectors",
    "MemorySpans",
    "MemorySuggestions",
    "MemorySyncJobs",
    "MemoryTaxonomy",
    "MemoryTenants",
    "MemoryToolServers",
    "WordReranker",
]
