"""Indexing of the catalog: points, index versions, the worker and the doctor."""
