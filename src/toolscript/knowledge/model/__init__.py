"""Values of the library: sources, chunks, extractions, queries and what ingest goes by."""
