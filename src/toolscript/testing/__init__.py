"""Deterministic in-memory adapters of ports. They pass the same contract suites as those of the engines."""

from toolscript.testing.auth import MemoryRequestBudget
from toolscript.testing.catalog import (
    MemoryCatalog,
    MemoryCatalogContents,
    MemoryDirtySet,
    MemoryItemChanges,
    MemorySyncJobs,
)
from toolscript.testing.curation import MemoryCurationRules
from toolscript.testing.documents import MemoryDocuments, MemoryQueryLog, MemoryTenants
from toolscript.testing.library import MemoryLibrary
from toolscript.testing.retrieval import HashEmbedder, MemoryIndexes
from toolscript.testing.search_log import MemorySearchLog
from toolscript.testing.skills import MemoryAssignments, MemorySkillVectors, MemorySuggestions, MemoryTaxonomy

__all__ = [
    "HashEmbedder",
    "MemoryAssignments",
    "MemoryCatalog",
    "MemoryCatalogContents",
    "MemoryCurationRules",
    "MemoryDirtySet",
    "MemoryDocuments",
    "MemoryIndexes",
    "MemoryItemChanges",
    "MemoryLibrary",
    "MemoryQueryLog",
    "MemoryRequestBudget",
    "MemorySearchLog",
    "MemorySkillVectors",
    "MemorySuggestions",
    "MemorySyncJobs",
    "MemoryTaxonomy",
    "MemoryTenants",
]
