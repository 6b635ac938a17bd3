"""Building blocks of the tools' JSON Schemas."""

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
    """Return an object schema for input, which rejects unknown properties."""
    return {**object_of(properties, *required), "additionalProperties": False}


def list_of(item: JsonObject) -> JsonObject:
    return {"type": "array", "items": item}


def whole_number(minimum: int, maximum: int, default: int, description: str = "") -> JsonObject:
    described = {"description": description} if description else {}
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default, **described}
