"""Deterministic doubles of every port, in memory. They pass the same contract suites as the real ones."""

from toolscript.testing.assignments import MemoryAssignments
from toolscript.testing.catalog import MemoryCatalog
from toolscript.testing.changes import MemoryItemChanges
from toolscript.testing.dirty_set import MemoryDirtySet
from toolscript.testing.embedder import HashEmbedder
from toolscript.testing.index import MemoryIndexes
from toolscript.testing.jobs import MemorySyncJobs
from toolscript.testing.skill_vectors import MemorySkillVectors
from toolscript.testing.suggestions import MemorySuggestions
from toolscript.testing.taxonomy import MemoryTaxonomy
from toolscript.testing.tool_servers import MemoryToolServers

__all__ = [
    "HashEmbedder",
    "MemoryAssignments",
    "MemoryCatalog",
    "MemoryDirtySet",
    "MemoryIndexes",
    "MemoryItemChanges",
    "MemorySkillVectors",
    "MemorySuggestions",
    "MemorySyncJobs",
    "MemoryTaxonomy",
    "MemoryToolServers",
]
