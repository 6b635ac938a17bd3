"""Schemas of tools: what they take, put together by hand, and what they answer, taken from the answer's model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolscript.core.items import JsonObject

if TYPE_CHECKING:
    from pydantic import BaseModel

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


def whole_number(least: int, most: int, usual: int, description: str = "") -> JsonObject:
    said = {"description": description} if description else {}
    return {"type": "integer", "minimum": least, "maximum": most, "default": usual, **said}


def output_schema(model: "type[BaseModel]") -> dict[str, object]:
    """What the model says of its fields. Without references, which not every client follows."""
    schema = model.model_json_schema(mode="serialization")
    inlined: dict[str, object] = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Without the titles that are only the names of fields over again."""
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    named = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    merged = {**named, **schema}
    return {
        keyword: {name: _inlined(one, definitions) for name, one in value.items()}
        if keyword == "properties"
        else _inlined(value, definitions)
        for keyword, value in merged.items()
        if keyword not in ("title", "$ref")
    }
