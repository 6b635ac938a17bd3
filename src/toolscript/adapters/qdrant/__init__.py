"""The index on Qdrant, over gRPC."""

from toolscript.adapters.qdrant.collections import QdrantIndexes
from toolscript.adapters.qdrant.connection import TIMEOUT_SECONDS, Qdrant, connect
from toolscript.adapters.qdrant.layout import Layout

__all__ = ["TIMEOUT_SECONDS", "Layout", "Qdrant", "QdrantIndexes", "connect"]
