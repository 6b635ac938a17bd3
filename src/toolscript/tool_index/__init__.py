"""The gateway's ranking as a library: an index over tools that a program has, and searches in it."""

from toolscript.tool_index.index import ToolIndex
from toolscript.tool_index.model import Explanation, IndexAnswer, IndexHit, Outcome

__all__ = ["Explanation", "IndexAnswer", "IndexHit", "Outcome", "ToolIndex"]
