"""Toolscript: search for AI agents over tools, documents and knowledge, by requests in plain words."""

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.version import __version__
from toolscript.tools.model.answer import ToolAnswer, ToolHit
from toolscript.tools.model.query import ToolQuery

__all__ = [
    "Item",
    "ItemKind",
    "SearchType",
    "ToolAnswer",
    "ToolHit",
    "ToolQuery",
    "ToolscriptError",
    "__version__",
]
