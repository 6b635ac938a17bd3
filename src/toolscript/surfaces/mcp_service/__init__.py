"""ASKING over MCP: the service's library, catalog and documents, each to whoever may.

Import from the modules: only `endpoint` and `guard` load the SDK, which takes more than a second.
"""
