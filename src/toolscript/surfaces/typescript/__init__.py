"""A TypeScript client for the tools of MCP servers, whatever their names and schemas hold.

Everything a server says reaches the module as a comment, a string in quotes, or a name made of letters and digits.
"""

from .markdown import fenced, search_preamble, types_document
from .module import typescript_module
from .usage import client_usage

__all__ = ["client_usage", "fenced", "search_preamble", "types_document", "typescript_module"]
