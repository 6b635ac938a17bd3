"""Toolscript in another process, over HTTP, with the standard library's client: others take longer to import."""
