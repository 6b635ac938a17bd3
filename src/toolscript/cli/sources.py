"""What differs between two definitions, line by line. Whoever decides by it must see all of it."""

import json
import unicodedata
from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile
from textwrap import TextWrapper

WIDTH = 100
AROUND = 3
# To match more lines than that takes long, and how long is for a stranger to choose.
MOST_LINES_MATCHED = 2_000

# Before what belongs to the line above.
CONTINUED = "\u21aa "
# Letters and marks by their category, blank or nothing to the eye: fillers, joiners, variation selectors.
_UNSEEN = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}).union(
    range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), map(ord, CONTINUED.strip())
)

_WRAPPED = TextWrapper(
    WIDTH,
    subsequent_indent=CONTINUED,
    expand_tabs=False,
    replace_whitespace=False,
    drop_whitespace=False,
    break_on_hyphens=False,
)


def field_diff(field: str, old: object, new: object) -> list[str]:
    """Both as text in lines, and where they differ; nothing that differs is left out."""
    was, now = _lines(old), _lines(new)
    names = f"{field} in force", f"{field} as it is now said to be"
    if max(len(was), len(now)) <= MOST_LINES_MATCHED:
        return [*unified_diff(was, now, *names, lineterm="", n=AROUND)]
    return [f"--- {names[0]}", f"+++ {names[1]}", *_without_matching(was, now)]


def visible(text: str) -> str:
    """Characters that a reader would not see, or that would move what is seen, are written out as codes.

    A backslash is written twice, so that a code is never the text it looks like.
    """
    return _written_out(text.replace("\\", "\\\\"))


def _written_out(text: str) -> str:
    return "".join(char if _is_seen(char) else _code(char) for char in text)


def _is_seen(char: str) -> bool:
    return char == " " or (unicodedata.category(char)[0] not in ("C", "Z") and ord(char) not in _UNSEEN)


def _code(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _lines(value: object) -> list[str]:
    """Broken at words, so that a change of one word in a long text is a change of one line."""
    if value is None:
        return []
    if isinstance(value, str):
        paragraphs = [visible(line) for line in value.split("\n")]
    else:
        # JSON has written its own backslashes twice.
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
        paragraphs = [_written_out(line) for line in text.split("\n")]
    return [line for paragraph in paragraphs for line in _WRAPPED.wrap(paragraph) or [""]]


def _without_matching(was: Sequence[str], now: Sequence[str]) -> list[str]:
    """All that is between the lines with which both begin and those with which both end."""
    head = _in_common(was, now)
    tail = _in_common(was[head:][::-1], now[head:][::-1])
    removed, added = was[head : len(was) - tail], now[head : len(now) - tail]
    return [f"@@ after line {head} @@", *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]


def _in_common(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
