"""In-memory doubles that only tests use. They pass the same contract suites as the real adapters."""

from tests.doubles.activity import MemoryActivity
from tests.doubles.auth import MemoryTokenVerifier
from tests.doubles.documents import MemoryDocumentVersions
from tests.doubles.retrieval import MemorySpan, MemorySpans, WordReranker
from tests.doubles.tool_servers import MemoryToolServers

__all__ = [
    "MemoryActivity",
    "MemoryDocumentVersions",
    "MemorySpan",
    "MemorySpans",
    "MemoryTokenVerifier",
    "MemoryToolServers",
    "WordReranker",
]
