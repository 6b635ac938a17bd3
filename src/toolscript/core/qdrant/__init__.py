"""Qdrant: connections, collections, and the index that retrieval queries."""
