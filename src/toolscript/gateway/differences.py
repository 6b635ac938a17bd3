"""How a definition differs from another, line by line, as a person reads it. A server that may lie wrote both."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice

from toolscript.core.text import visible

# A difference shows at most so many lines, each of so many letters at most, of definitions of so many lines.
MAX_LINES, MAX_LETTERS, MAX_COMPARED = 400, 160, 5_000
# What is shown around the first change that no line shows.
AROUND = 60

# Where a text is split into lines, so that a changed sentence is one changed line.
_SENTENCE_END = re.compile(r"(?<=[.!?;]) ")
# In a key, what a path has between keys.
_LIKE_A_PATH = re.compile(r"[\s.:\"]|\[\d*\]|^$")


def difference(before: str, now: str, max_lines: int = MAX_LINES) -> str:
    """Return the lines that are gone (`-`) and new (`+`), each with the path of its value.

    Invisible characters are spelled out, so that none hides a change. Empty only if both are equal.
    """
    try:
        old, new = [*islice(_lines(before), MAX_COMPARED + 1)], [*islice(_lines(now), MAX_COMPARED + 1)]
    except (ValueError, RecursionError):
        return _first_change("it cannot be read", before, now)
    if max(len(old), len(new)) > MAX_COMPARED:
        return _first_change(f"too long to compare: more than {MAX_COMPARED:,} lines", before, now)
    changed = [line for line in islice(unified_diff(old, new, n=0, lineterm=""), 2, None) if line[0] in "+-"]
    if not changed and before != now:
        return _first_change("only spaces, line ends or the form of a value differ", before, now)
    more = [f"and {len(changed) - max_lines:,} more lines"] if len(changed) > max_lines else []
    return "\n".join([*changed[:max_lines], *more])


def _first_change(why: str, before: str, now: str) -> str:
    """Return both texts around the first character in which they differ."""
    pairs = zip(before, now, strict=False)
    at = next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))
    begin = max(0, at - AROUND)
    old, new = (visible(text[begin : at + AROUND]).replace("\n", " ") for text in (before, now))
    return f"{why}; first:\n-{old}\n+{new}"


def _lines(definition: str) -> Iterator[str]:
    if definition:
        for path, text in _values(json.loads(definition)):
            for line in text.split("\n"):
                for sentence in _SENTENCE_END.split(line):
                    for start in range(0, len(sentence) or 1, MAX_LETTERS):
                        yield f"{path}: {sentence[start : start + MAX_LETTERS]}"


def _values(definition: object) -> Iterator[tuple[str, str]]:
    """Yield each value of a definition with its path, invisible characters spelled out in both."""
    left: list[tuple[object, str]] = [(definition, "")]
    while left:
        value, path = left.pop()
        if isinstance(value, Mapping) and value:
            left += [(value[key], _bounded(f"{path}.{_shown(key)}".removeprefix("."))) for key in reversed(value)]
        elif isinstance(value, list) and value:
            numbered = [*enumerate(value)]
            left += [(inner, _bounded(f"{path}[{_place(number, inner)}]")) for number, inner in reversed(numbered)]
        else:
            yield path, _text(value)


def _place(number: int, value: object) -> str:
    """Number what has parts, so that these stay together; of plain values only the order counts."""
    return str(number) if isinstance(value, Mapping | list) else ""


def _shown(key: str) -> str:
    return json.dumps(visible(key), ensure_ascii=False) if _LIKE_A_PATH.search(key) else visible(key)


def _bounded(path: str) -> str:
    if len(path) <= MAX_LETTERS:
        return path
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{path[: MAX_LETTERS // 2]}...{digest}"


def _text(value: object) -> str:
    """A text that looks like another value is in quotes."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return visible(value)
    return json.dumps(visible(value), ensure_ascii=False)
