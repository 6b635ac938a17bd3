"""Toolscript: search for AI agents over tools, documents and knowledge, by requests in plain words."""

from typing import TYPE_CHECKING

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.version import __version__
from toolscript.tools.model.answer import ToolAnswer, ToolHit
from toolscript.tools.model.query import ToolQuery

if TYPE_CHECKING:
    from toolscript.tool_index import ToolIndex

__all__ = [
    "Item",
    "ItemKind",
    "SearchType",
    "ToolAnswer",
    "ToolHit",
    "ToolIndex",
    "ToolQuery",
    "ToolscriptError",
    "__version__",
]

# A type checker would take every misspelt name for one of these.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import on first use what needs NumPy."""
        if name == "ToolIndex":
            from toolscript.tool_index import ToolIndex

            return ToolIndex
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
