"""Toolscript: search for AI agents over tools, documents and knowledge, by requests in plain words.

Names are loaded when they are first used: `import toolscript` costs next to nothing.
"""

from toolscript.core.version import __version__

# That of `typing`, which takes longer to import than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolscript.client import answers
    from toolscript.client.clients import AsyncClient, Client
    from toolscript.core.errors import (
        Conflict,
        Forbidden,
        InvalidRequest,
        NotFound,
        Rejected,
        SetupError,
        ToolscriptError,
        TooManyRequests,
        Unauthorized,
        Unavailable,
    )
    from toolscript.gateway.in_process import Gateway
    from toolscript.tool_index import ToolIndex

_ERRORS = "toolscript.core.errors"
_PLACES = {
    "AsyncClient": "toolscript.client.clients",
    "Client": "toolscript.client.clients",
    "Gateway": "toolscript.gateway.in_process",
    "Conflict": _ERRORS,
    "Forbidden": _ERRORS,
    "InvalidRequest": _ERRORS,
    "NotFound": _ERRORS,
    "Rejected": _ERRORS,
    "SetupError": _ERRORS,
    "TooManyRequests": _ERRORS,
    "ToolIndex": "toolscript.tool_index",
    "ToolscriptError": _ERRORS,
    "Unauthorized": _ERRORS,
    "Unavailable": _ERRORS,
}

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Forbidden",
    "Gateway",
    "InvalidRequest",
    "NotFound",
    "Rejected",
    "SetupError",
    "TooManyRequests",
    "ToolIndex",
    "ToolscriptError",
    "Unauthorized",
    "Unavailable",
    "__version__",
    "answers",
]


# A type checker would take every misspelt name for one of these.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a public name, once."""
        from importlib import import_module

        if name == "answers":
            value: object = import_module("toolscript.client.answers")
        elif name in _PLACES:
            value = getattr(import_module(_PLACES[name]), name)
        else:
            raise AttributeError(f"module 'toolscript' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
