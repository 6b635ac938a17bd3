"""Ingest: files become chunks, extractions and points of the indexes."""
