"""What searches take and answer over HTTP."""

from typing import Annotated

from pydantic import BeforeValidator

from toolscript.core.retrieval.query import MAX_QUERY

# Said here and checked by the query itself, whose refusals are those of every surface.
QUERY_TEXT = {"minLength": 1, "maxLength": MAX_QUERY, "pattern": r"\S"}


def _number(value: object) -> object:
    """JSON has truths and texts of their own; 5.0 is a whole number, which a strict one would refuse."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Count = Annotated[int, BeforeValidator(_number)]
