"""Nobody traces."""

from toolscript.search.no_spans import NoSpans

__all__ = ["NoSpans"]
