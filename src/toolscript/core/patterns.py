"""Regular expressions from outside, matched in linear time: `re` can take for ever, and stop all threads."""

from collections.abc import Callable

from pydantic_core import SchemaError, SchemaValidator, core_schema

MAX_PATTERN = 1_000


def matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return whether a text has a match of the pattern; None if the pattern is too long or is none."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
        ).isinstance_python
    except SchemaError:
        return None
