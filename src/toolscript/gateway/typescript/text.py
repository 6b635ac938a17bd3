"""What a schema and a server say, as comments that nothing can leave."""

import json
import re
from collections.abc import Mapping

MAX_VALUE = 200
MAX_SUMMARY = 120
# Compilers and runtimes take orders from these words, also within a comment.
_DIRECTIVE = re.compile(r"@(?=(?:ts|jsx|deno|import)\b|jsx)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"


def notes_of(schema: object) -> tuple[str, ...]:
    """The lines of a property's comment: its description, format and default."""
    if not isinstance(schema, Mapping):
        return ()
    description, form = schema.get("description"), schema.get("format")
    lines = description.splitlines() if isinstance(description, str) else []
    if isinstance(form, str):
        lines.append(f"@format {form}")
    if "default" in schema:
        lines.append(f"@default {_shortened(json.dumps(schema['default'], ensure_ascii=False), MAX_VALUE)}")
    if schema.get("deprecated") is True:
        lines.append("@deprecated")
    return tuple(lines)


def block_comment(lines: tuple[str, ...], indent: str) -> str:
    """Always on several lines: a directive works on the last line of a comment only, which is ours."""
    safe = [_safe(line) for text in lines for line in text.splitlines()]
    while safe and not safe[-1]:
        safe.pop()
    inner = "".join(f"{indent} * {line}".rstrip() + "\n" for line in safe)
    return f"{indent}/**\n{inner}{indent} */\n" if safe else ""


def line_comment(text: str, indent: str) -> str:
    """The first line that says something, shortened."""
    said = next((line for line in map(_safe, text.splitlines()) if line), "")
    return f"{indent}/** {_safe(_shortened(said, MAX_SUMMARY))} */\n" if said else ""


def _safe(line: str) -> str:
    shown = line if line.isprintable() else "".join(map(_shown, line))
    return _DIRECTIVE.sub("@ ", shown.replace("*/", "*\\/")).strip()


def _shown(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else " "


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
