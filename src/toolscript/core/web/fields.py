"""Helpers for request and response models: shared fields, construction, subsets and schemas."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model
from starlette.responses import Response

from toolscript.core.retrieval.query import MAX_QUERY

# Documented here, checked by the query itself, so that all interfaces raise the same errors.
QUERY_TEXT = {"minLength": 1, "maxLength": MAX_QUERY, "pattern": r"\S"}
M = TypeVar("M", bound=BaseModel)


def _number(value: object) -> object:
    """Reject booleans and strings; accept 5.0 as an integer, which strict mode would reject."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, BeforeValidator(_number)]
# Up to the largest integer that every JSON parser reads as it is. The limits come before the validator: after it,
# or at a union, the JSON Schema does not have them.
JsonId = Annotated[int, Field(ge=1, le=2**53 - 1), BeforeValidator(_number)]


def json_response(body: BaseModel, headers: Mapping[str, str] | None = None) -> Response:
    """Serialize a model once, without unset fields; FastAPI would validate it again."""
    return Response(body.model_dump_json(exclude_unset=True), media_type="application/json", headers=headers)


def model_of(model: type[M], value: object, **different: Any) -> M:
    """Build a model from the attributes of a value that match its fields, and from `different`.

    Nothing is validated: the value is internal.
    """
    same: dict[str, Any] = {
        name: _plain(getattr(value, name)) for name in model.model_fields if name not in different
    }
    return model.model_construct(**same, **different)


def _plain(value: object) -> object:
    """Return the value as JSON models hold it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else value


def subset(
    name: str, model: type[BaseModel], fields: Sequence[str], optional: Sequence[str] = (), **more: Any
) -> type[BaseModel]:
    """Create a model with some fields of another, with their descriptions, and `more` as for `create_model`.

    `optional` are further fields of the other model that may be left out.
    """
    source = model.model_fields
    selected: dict[str, Any] = {field: (source[field].annotation, source[field]) for field in fields}
    for field in optional:
        selected[field] = (source[field].annotation, Field(None, description=source[field].description))
    created: type[BaseModel] = create_model(name, **more, **selected)
    return created


def list_of_model(model: type[BaseModel]) -> Any:
    """Return a required field for `subset`: a list of a model that `subset` created."""
    return GenericAlias(list, (model,)), ...


def output_schema(model: type[BaseModel]) -> dict[str, object]:
    """Return the model's JSON Schema without `$ref`, which not every client resolves."""
    schema = model.model_json_schema(mode="serialization")
    inlined: dict[str, object] = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Inline references and drop titles, which only repeat field names."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    named = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    merged = {**named, **schema}
    return {
        keyword: {name: _inlined(item, definitions) for name, item in value.items()}
        if keyword == "properties"
        else _inlined(value, definitions)
        for keyword, value in merged.items()
        if keyword not in ("title", "$ref")
    }
