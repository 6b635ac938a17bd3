"""Comments that no text can leave, and names that TypeScript accepts."""

import json
import re
import unicodedata
from collections.abc import Mapping

MAX_VALUE = 200
MAX_SUMMARY = 120
# Compilers and runtimes take orders from these words, also within a comment.
_DIRECTIVE = re.compile(r"@(?=(?:ts|jsx|deno|import)\b|jsx)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"

# Letters of Unicode 3.2 within 16 bits: every compiler and engine knows them, whichever version it follows.
_LETTERS = unicodedata.ucd_3_2_0
MAX_LENGTH = 120


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
    return "".join(one if _is_part(one) else " " for one in text).split()


def _is_part(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    return ord(character) < 0x10000 and _LETTERS.category(character).startswith("L")


def _upper(word: str) -> str:
    return _single(word[0].upper(), word[0]) + word[1:]


def _single(changed: str, original: str) -> str:
    """Some letters become two in the other case, or one that is no old letter; those stay as they are."""
    return changed if len(changed) == 1 and _is_part(changed) else original


class Names:
    """Gives each name once; who asks later for the same gets a number behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def unique(self, wanted: str, endings: tuple[str, ...] = ("",)) -> str:
        """The name under which nothing with any of the endings is taken yet."""
        name, number = wanted, self._numbers.get(wanted, 1)
        while any(name + ending in self._taken for ending in endings):
            number += 1
            name = f"{wanted}{number}"
        self._numbers[wanted] = number
        self._taken.update(name + ending for ending in endings)
        return name
