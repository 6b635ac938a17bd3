"""The indexes on Qdrant, over gRPC."""

from toolscript.adapters.qdrant.collections import QdrantIndexes
from toolscript.adapters.qdrant.connection import TIMEOUT_SECONDS, Qdrant, connect
from toolscript.adapters.qdrant.credentials import Tls
from toolscript.adapters.qdrant.documents.collection import (
    QdrantDocuments,
    create_documents,
    document_collections,
    documents_of,
    drop_documents,
    live_documents,
    live_name,
    make_documents_live,
    open_documents,
)
from toolscript.adapters.qdrant.documents.layout import DocumentLayout, declared_fields
from toolscript.adapters.qdrant.documents.moving import QdrantPlaces
from toolscript.adapters.qdrant.documents.places import copy_own_shards
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
    "copy_own_shards",
    "create_documents",
    "declared_fields",
    "document_collections",
    "documents_of",
    "drop_documents",
    "live_documents",
    "live_name",
    "make_documents_live",
    "open_documents",
]
