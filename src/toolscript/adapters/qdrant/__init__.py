"""The indexes on Qdrant, over gRPC."""

from toolscript.adapters.qdrant.collections import QdrantIndexes
from toolscript.adapters.qdrant.connection import TIMEOUT_SECONDS, Qdrant, connect
from toolscript.adapters.qdrant.credentials import Tls
from toolscript.adapters.qdrant.documents.collection import QdrantDocuments, live_documents, open_documents
from toolscript.adapters.qdrant.documents.layout import DocumentLayout, declared_fields
from toolscript.adapters.qdrant.documents.moving import QdrantPlaces
from toolscript.adapters.qdrant.layout import Layout

__all__ = [
    "TIMEOUT_SECONDS",
    "DocumentLayout",
    "Layout",
    "Qdrant",
    "QdrantDocuments",
    "QdrantIndexes",
    "QdrantPlaces",
    "Tls",
    "connect",
    "declared_fields",
    "live_documents",
    "open_documents",
]
