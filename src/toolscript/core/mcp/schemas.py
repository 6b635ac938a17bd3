"""Words that schemas of tools are put together from."""

from collections.abc import Mapping

from toolscript.core.items import JsonObject

STRING: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
INTEGER: JsonObject = {"type": "integer"}
BOOLEAN: JsonObject = {"type": "boolean"}
ANY_OBJECT: JsonObject = {"type": "object"}

READ_ONLY: JsonObject = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


def object_of(properties: Mapping[str, JsonObject], *required: str) -> dict[str, object]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def closed(properties: Mapping[str, JsonObject], *required: str) -> dict[str, object]:
    """For what comes in: a name that is none of these is a mistake."""
    return {**object_of(properties, *required), "additionalProperties": False}


def list_of(one: JsonObject) -> JsonObject:
    return {"type": "array", "items": one}


def whole_number(minimum: int, maximum: int, default: int, description: str = "") -> JsonObject:
    said = {"description": description} if description else {}
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default, **said}
