"""Tokens of texts, exact where the tokenizer is installed, else estimated; and what a list of tools costs."""

import json
from collections.abc import Callable, Mapping, Sequence

from toolscript.core.errors import SetupError
from toolscript.core.items import Item, ItemKind, JsonObject, tool_id

# Of o200k on tool definitions: 4.1 to 4.8 in nine catalogs (docs/why.md). Scripts other than Latin are within it,
# because their characters have more bytes and more tokens.
BYTES_PER_TOKEN = 4.5

Count = Callable[[str], int]


def estimated_tokens(byte_count: float, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    return round(byte_count / bytes_per_token)


def size_of(value: object) -> int:
    """Return the bytes of a JSON value in compact form and UTF-8, without those of escapes.

    In Python, so that a thread that measures megabytes lets the others run.
    """
    if isinstance(value, str):
        return 2 + (len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, Mapping):
        return 1 + max(1, sum(size_of(str(key)) + size_of(inner) + 2 for key, inner in value.items()))
    if isinstance(value, list | tuple):
        return 1 + max(1, sum(size_of(inner) + 1 for inner in value))
    if value is None or isinstance(value, bool):
        return 5 if value is False else 4
    return len(str(value))


def definitions_of(items: Sequence[Item]) -> list[JsonObject]:
    """Return the tools among the items as a client that lists all of them gets them."""
    return [
        {
            "name": tool_id(item.server, item.name),
            "description": item.description,
            "inputSchema": item.input_schema or {"type": "object"},
        }
        for item in items
        if item.kind is ItemKind.TOOL
    ]


def listed_text(definition: JsonObject) -> str:
    """Return a definition as a client puts it into a model's context: name, description and arguments."""
    kept = ("name", "description", "inputSchema")
    return as_json({key: definition[key] for key in kept if key in definition})


def listed_tokens(definitions: Sequence[JsonObject], count: Count) -> int:
    return sum(count(listed_text(definition)) for definition in definitions)


def listed_bytes(definitions: Sequence[JsonObject]) -> int:
    return sum(len(listed_text(definition).encode()) for definition in definitions)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def count_if_possible() -> Count | None:
    try:
        return o200k_tokens()
    except SetupError:
        return None


def o200k_tokens() -> Count:
    """Return the tokenizer of GPT-4o and its successors; others differ by a few percent. It takes 67 MB."""
    try:
        from rs_bpe.bpe import openai  # type: ignore[import-not-found]
    except ImportError as error:
        hint = "pip install rs-bpe"
        raise SetupError("counting tokens needs the package rs-bpe", hint=hint) from error
    encoding = openai.o200k_base()

    def count(text: str) -> int:
        return int(encoding.count(text))

    return count
