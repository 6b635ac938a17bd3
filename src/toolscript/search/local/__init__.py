"""Search on a person's own machine: exact, in memory, both arms over every item."""

from toolscript.search.local.capabilities import Capabilities, capabilities_of, default_capabilities
from toolscript.search.local.index import Analysed, LocalIndex, analyse
from toolscript.search.local.tools import LocalSearch

__all__ = [
    "Analysed",
    "Capabilities",
    "LocalIndex",
    "LocalSearch",
    "analyse",
    "capabilities_of",
    "default_capabilities",
]
