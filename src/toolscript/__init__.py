"""Toolscript finds, for a request in plain words, the right tool, document or piece of knowledge."""

from toolscript.errors import ToolscriptError
from toolscript.model.items import Item, ItemKind
from toolscript.model.queries import SearchType, ToolQuery
from toolscript.model.results import ToolAnswer, ToolHit

__version__ = "0.1.0"

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
