"""Deterministic in-memory doubles of every port. They pass the same contract suites as the real adapters."""

from toolscript.testing.activity import MemoryActivity
from toolscript.testing.auth import MemoryRequestBudget, MemoryTokenVerifier
from toolscript.testing.catalog import (
    MemoryCatalog,
    MemoryCatalogContents,
    MemoryDirtySet,
    MemoryItemChanges,
    MemorySyncJobs,
)
from toolscript.testing.curation import MemoryCurationRules
from toolscript.testing.documents import MemoryDocuments, MemoryDocumentVersions, MemoryQueryLog, MemoryTenants
from toolscript.testing.library import MemoryLibrary
from toolscript.testing.retrieval import HashEmbedder, MemoryIndexes, MemorySpans, WordReranker
from toolscript.testing.search_log import MemorySearchLog
from toolscript.testing.skills import MemoryAssignments, MemorySkillVectors, MemorySuggestions, MemoryTaxonomy
from toolscript.testing.tool_servers import MemoryToolServers

__all__ = [
    "HashEmbedder",
    "MemoryActivity",
    "MemoryAssignments",
    "MemoryCatalog",
    "MemoryCatalogContents",
    "MemoryCurationRules",
    "MemoryDirtySet",
    "MemoryDocumentVersions",
    "MemoryDocuments",
    "MemoryIndexes",
    "MemoryItemChanges",
    "MemoryLibrary",
    "MemoryQueryLog",
    "MemoryRequestBudget",
    "MemorySearchLog",
    "MemorySkillVectors",
    "MemorySpans",
    "MemorySuggestions",
    "MemorySyncJobs",
    "MemoryTaxonomy",
    "MemoryTenants",
    "MemoryTokenVerifier",
    "MemoryToolServers",
    "WordReranker",
]
