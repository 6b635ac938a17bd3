"""Embedders and cross-encoders, in this process or over HTTP, and the caches of their vectors."""
