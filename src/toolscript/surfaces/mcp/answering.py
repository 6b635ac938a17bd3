"""Whatever goes wrong with a call is an answer that a model can read."""

import logging
from collections.abc import Awaitable, Callable

from toolscript.errors import ToolscriptError
from toolscript.model.servers import CallResult
from toolscript.surfaces.mcp.answers import failed, failed_with

logger = logging.getLogger("toolscript.mcp")


async def answered(
    answer: Callable[[], Awaitable[CallResult]], but_for: tuple[type[ToolscriptError], ...] = ()
) -> CallResult:
    """`but_for` are errors that whoever asks answers differently."""
    try:
        return await answer()
    except but_for:
        raise
    except ToolscriptError as error:
        return failed(error)
    except Exception:
        logger.exception("unexpected error")
        return failed_with("Something unexpected went wrong on our side.")
