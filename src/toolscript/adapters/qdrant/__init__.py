"""The indexes on Qdrant, over gRPC."""

from toolscript.adapters.qdrant.collections import FoundCollection, QdrantIndexes, found_collections
from toolscript.adapters.qdrant.connection import TIMEOUT_SECONDS, Qdrant, connect
from toolscript.adapters.qdrant.credentials import Tls
from toolscript.adapters.qdrant.documents.collection import (
    QdrantDocuments,
    create_documents,
    documents_of,
    drop_documents,
    live_documents,
    live_name,
    make_documents_live,
    open_documents,
    open_version,
)
from toolscript.adapters.qdrant.documents.layout import DocumentLayout, declared_fields
from toolscript.adapters.qdrant.documents.moving import QdrantPlaces
from toolscript.adapters.qdrant.documents.places import make_own_shards, own_shards
from toolscript.adapters.qdrant.layout import Layout

__all__ = [
    "TIMEOUT_SECONDS",
    "DocumentLayout",
    "FoundCollection",
    "Layout",
    "Qdrant",
    "QdrantDocuments",
    "QdrantIndexes",
    "QdrantPlaces",
    "Tls",
    "connect",
    "create_documents",
    "declared_fields",
    "documents_of",
    "drop_documents",
    "found_collections",
    "live_documents",
    "live_name",
    "make_documents_live",
    "make_own_shards",
    "open_documents",
    "open_version",
    "own_shards",
]
