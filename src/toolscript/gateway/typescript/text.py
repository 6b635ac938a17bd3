"""Comments that no text can break out of, and names that TypeScript accepts."""

import json
import re
import unicodedata
from collections.abc import Mapping

MAX_VALUE = 200
MAX_SUMMARY = 120
# Compilers and runtimes treat these words as directives, also within a comment.
_DIRECTIVE = re.compile(r"@(?=(?:ts|jsx|deno|import)\b|jsx)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"

# Letters of Unicode 3.2 within 16 bits: every compiler and engine accepts them, whatever its version.
_LETTERS = unicodedata.ucd_3_2_0
MAX_LENGTH = 120


def notes_of(schema: object) -> tuple[str, ...]:
    """Return the lines of a property's comment: its description, format and default."""
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
    """Return a comment of several lines: a directive works only on a comment's last line, which is ours."""
    safe = [_safe(line) for text in lines for line in text.splitlines()]
    while safe and not safe[-1]:
        safe.pop()
    inner = "".join(f"{indent} * {line}".rstrip() + "\n" for line in safe)
    return f"{indent}/**\n{inner}{indent} */\n" if safe else ""


def line_comment(text: str, indent: str) -> str:
    """Return a comment with the first non-empty line, shortened."""
    summary = next((line for line in map(_safe, text.splitlines()) if line), "")
    return f"{indent}/** {_safe(_shortened(summary, MAX_SUMMARY))} */\n" if summary else ""


def _safe(line: str) -> str:
    visible = line if line.isprintable() else "".join(map(_shown, line))
    return _DIRECTIVE.sub("@ ", visible.replace("*/", "*\\/")).strip()


def _shown(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else " "


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def pascal_case(text: str) -> str:
    """`desktop-commander` becomes `DesktopCommander`; empty when nothing in the text can be part of a name."""
    return "".join(_upper(word) for word in _words(text))[:MAX_LENGTH]


def camel_case(text: str) -> str:
    """`desktop-commander` becomes `desktopCommander`."""
    name = pascal_case(text)
    return _single(name[0].lower(), name[0]) + name[1:] if name else ""


def not_a_digit_first(name: str) -> str:
    return f"_{name}" if name[:1].isdigit() else name


def _words(text: str) -> list[str]:
    return "".join(character if _is_part(character) else " " for character in text).split()


def _is_part(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    return ord(character) < 0x10000 and _LETTERS.category(character).startswith("L")


def _upper(word: str) -> str:
    return _single(word[0].upper(), word[0]) + word[1:]


def _single(changed: str, original: str) -> str:
    """Return the changed letter unless its case mapping is two letters or a newer one; then the original."""
    return changed if len(changed) == 1 and _is_part(changed) else original


class Names:
    """Makes names unique: repeated requests for a name get a number appended."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def unique(self, requested: str, endings: tuple[str, ...] = ("",)) -> str:
        """Return a name that is free with each of the endings."""
        name, number = requested, self._numbers.get(requested, 1)
        while any(name + ending in self._taken for ending in endings):
            number += 1
            name = f"{requested}{number}"
        self._numbers[requested] = number
        self._taken.update(name + ending for ending in endings)
        return name
