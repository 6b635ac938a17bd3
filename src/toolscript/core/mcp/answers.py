"""Results of tools: short text for a model, and the same facts as structured content for programs."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import visible, visible_json

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_DESCRIPTION = 160
MAX_WORDS = 8
# Blocks of content, and beginnings of media types, that clients show or play.
PICTURES = ("image", "audio")

logger = logging.getLogger("toolscript.mcp")


def failed(error: ToolscriptError) -> CallResult:
    return failed_with(f"{error.message}. {error.hint}" if error.hint else error.message)


def failed_with(text: str) -> CallResult:
    return CallResult(({"type": "text", "text": visible(text)},), is_error=True)


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def one_line(text: str) -> str:
    """Return the text in one line, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= MAX_DESCRIPTION:
        return line
    return line[:MAX_DESCRIPTION].rsplit(" ", 1)[0].rstrip(",;:. ") + " …"


def result(text: str, data: JsonObject) -> CallResult:
    """Return a result with invisible characters made visible: it quotes servers' texts and queries."""
    return CallResult(({"type": "text", "text": visible(text)},), visible_json(data))


def model_result(text: str, answer: "BaseModel") -> CallResult:
    """Return a result whose structured content is the model that HTTP responds with."""
    return result(text, answer.model_dump(mode="json", exclude_unset=True))


async def answered(
    answer: Callable[[], Awaitable[CallResult]],
    but_for: tuple[type[ToolscriptError], ...] = (),
    told: Callable[[ToolscriptError], CallResult] = failed,
) -> CallResult:
    """Run a tool call; errors become results by `told`, except those in `but_for`, which the caller handles."""
    try:
        return await answer()
    except but_for:
        raise
    except ToolscriptError as error:
        return told(error)
    except Exception:
        logger.exception("unexpected error")
        return failed_with("Something unexpected went wrong on our side.")
