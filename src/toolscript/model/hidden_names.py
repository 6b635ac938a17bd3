"""Names that a server's tools are called by, and that must be sent as they are: none may hide something.

A description with something invisible in it is shown with that written out. A name or a value that is sent back
cannot be: so whatever has one is refused.
"""

from collections.abc import Iterator, Mapping

from toolscript.model.items import Item
from toolscript.model.server_names import mixed_scripts
from toolscript.model.text import has_unseen

_SENT_BACK = ("const", "enum", "required")
_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired")


def why_hidden(item: Item) -> str:
    """Empty for an item that can be shown and called as it is."""
    if has_unseen(item.name) or any(char in item.name for char in "\r\n\t"):
        return f"its name has a character that nobody sees: {ascii(item.name)[:80]}"
    if why := mixed_scripts(item.name):
        return f"its name {why}"
    hidden = next((one for one in _sent_back(item.input_schema) if has_unseen(one)), None)
    return "" if hidden is None else f"its arguments have a character that nobody sees: {ascii(hidden)[:80]}"


def _sent_back(schema: object) -> Iterator[str]:
    """Names of arguments, and values that an argument may have."""
    if isinstance(schema, list | tuple):
        for inner in schema:
            yield from _sent_back(inner)
    if not isinstance(schema, Mapping):
        return
    for key, inner in schema.items():
        if key in _SENT_BACK:
            yield from _texts(inner)
        elif key in _NAMES and isinstance(inner, Mapping):
            # What is called like a keyword here is an argument's name.
            yield from map(str, inner)
            yield from _sent_back([*inner.values()])
        else:
            yield from _sent_back(inner)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
