"""The index on Qdrant, over gRPC."""

from toolscript.adapters.qdrant.collections import QdrantIndexes
from toolscript.adapters.qdrant.connection import Qdrant, connect
from toolscript.adapters.qdrant.layout import Layout

__all__ = ["Layout", "Qdrant", "QdrantIndexes", "connect"]
