"""A tool in one line, ready to be called: `create_issue(owner, repo, title, body?)`."""

import json
import re
from collections.abc import Mapping

from toolscript.core.items import Item, ItemKind
from toolscript.core.text import visible

MAX_SIGNATURE, MAX_NAME = 200, 60
_PLAIN = re.compile(r"[\w.$@:/-]+")


def signature(item: Item) -> str:
    """Return a tool's name with the names of its arguments, required ones first; empty for other items."""
    if item.kind is not ItemKind.TOOL:
        return ""
    schema = item.input_schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    names = [str(name) for name in properties] if isinstance(properties, Mapping) else []
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []
    first = dict.fromkeys([*(name for name in names if name in needed), *needed])
    arguments = [*map(_shown, first), *(f"{_shown(name)}?" for name in names if name not in first)]
    return f"{_shown(item.name)}({_as_many_as_fit(arguments)})"


def _as_many_as_fit(arguments: list[str]) -> str:
    left, fitting = MAX_SIGNATURE, list[str]()
    for argument in arguments:
        left -= len(argument) + 2
        if left < 0:
            return ", ".join([*fitting, "…"])
        fitting.append(argument)
    return ", ".join(fitting)


def _shown(name: str) -> str:
    """Return a name in one line; one that could pose as something else is quoted."""
    text = visible(name)
    if len(text) > MAX_NAME:
        text = f"{text[:MAX_NAME]}…"
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
