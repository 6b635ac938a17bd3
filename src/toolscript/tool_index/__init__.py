"""The gateway's ranking as a library: an index over tools that a program has, and searches in it."""

from toolscript.tool_index.index import ToolIndex
from toolscript.tool_index.model import Explanation, IndexAnswer, IndexHit, IndexStep, Outcome

__all__ = ["Explanation", "IndexAnswer", "IndexHit", "IndexStep", "Outcome", "ToolIndex"]
