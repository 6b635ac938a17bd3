"""Models of requests and answers: fields they share, filled from values, in part, and as a schema."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model
from starlette.responses import Response

from toolscript.core.retrieval.query import MAX_QUERY

# Said here and checked by the query itself, whose refusals are those of every surface.
QUERY_TEXT = {"minLength": 1, "maxLength": MAX_QUERY, "pattern": r"\S"}
M = TypeVar("M", bound=BaseModel)


def _number(value: object) -> object:
    """JSON has truths and texts of their own; 5.0 is a whole number, which a strict one would refuse."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, BeforeValidator(_number)]


def json_response(body: BaseModel, headers: Mapping[str, str] | None = None) -> Response:
    """Serialised once, here: the framework would validate what we have just built. What is not set is left out."""
    return Response(body.model_dump_json(exclude_unset=True), media_type="application/json", headers=headers)


def model_of(model: type[M], value: object, **different: Any) -> M:
    """A model filled from the attributes of a value that have the names of its fields, and from `different`.

    Nothing is validated: the value is our own.
    """
    same: dict[str, Any] = {
        name: _plain(getattr(value, name)) for name in model.model_fields if name not in different
    }
    return model.model_construct(**same, **different)


def _plain(value: object) -> object:
    """As the fields of a model have it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else value


def subset(
    name: str, model: type[BaseModel], fields: Sequence[str], optional: Sequence[str] = (), **more: Any
) -> type[BaseModel]:
    """A model with these fields of another, described as there, and `more` as `create_model` takes them.

    `optional` fields are the other's too, and may be left out.
    """
    known = model.model_fields
    taken: dict[str, Any] = {field: (known[field].annotation, known[field]) for field in fields}
    for field in optional:
        taken[field] = (known[field].annotation, Field(None, description=known[field].description))
    made: type[BaseModel] = create_model(name, **more, **taken)
    return made


def list_of_model(model: type[BaseModel]) -> Any:
    """A required field for `subset` that lists models made by it."""
    return GenericAlias(list, (model,)), ...


def output_schema(model: type[BaseModel]) -> dict[str, object]:
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
