"""Which requests are subject to admission, and with which others they share places. Nowhere else is it decided.

| request                                     | kind  |
|---------------------------------------------|-------|
| health checks, metrics                      | none: an operator needs them most while the service is overloaded |
| `PUT /documents`                            | none: it has places of its own, see document_turns.py |
| searches, all that reads, everything at MCP | read  |
| all that writes                             | write: so that neither kind starves the other |
"""

from enum import StrEnum

ALWAYS_ADMITTED = frozenset({"/livez", "/readyz", "/search/health", "/metrics"})
UPLOADS = ("PUT", "/documents")
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MCP_PATH = "/mcp"
READS_THAT_POST = frozenset({"/api/v1/search", "/search", "/search_knowledge", MCP_PATH})


class Kind(StrEnum):
    READ = "read"
    WRITE = "write"


def kind_of(method: str, path: str) -> Kind | None:
    if path in ALWAYS_ADMITTED or (method, path) == UPLOADS:
        return None
    return Kind.READ if method in READING_METHODS or path in READS_THAT_POST else Kind.WRITE
