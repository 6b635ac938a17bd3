"""What a tool answered, as plain data."""

from collections.abc import Mapping

from toolscript.errors import InvalidRequest, ServerRejected
from toolscript.model.item_json import storable
from toolscript.model.items import JsonObject
from toolscript.model.servers import CallResult


def call_result(tool: str, answer: JsonObject) -> CallResult:
    if answer.get("resultType", "complete") != "complete":
        raise ServerRejected(f"{tool}: the server asks back before it answers, and nobody here can reply")
    content = answer.get("content", [])
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise ServerRejected(f"{tool}: the answer has no list of content")
    try:
        return CallResult(
            content=tuple(_block(block) for block in content),
            structured_content=storable(answer.get("structuredContent")),
            is_error=answer.get("isError") is True,
        )
    except InvalidRequest as error:
        raise ServerRejected(f"{tool}: the answer is {error.message}") from error


def _block(block: JsonObject) -> JsonObject:
    plain = storable(block)
    return {name: value for name, value in plain.items() if value is not None} if isinstance(plain, dict) else {}
