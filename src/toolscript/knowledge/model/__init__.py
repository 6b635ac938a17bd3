"""Values of the library: sources, chunks, extractions, queries and the state of ingest."""
