"""A library with attribution: ingest of files, and search that names its sources."""
