"""FIND AND CALL over MCP: three tools that stand for all the tools of a gateway, and each server by itself.

Import from the modules: only `endpoint` loads the SDK, which takes more than a second.
"""
