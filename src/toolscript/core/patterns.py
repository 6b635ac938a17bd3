"""Regular expressions from outside, matched in linear time: `re` can take for ever, and stop all threads.

Compiling one takes time and memory, too, which its text hardly shows: `(?:\\w{40}){20}` takes 40 MB. So what it
costs is estimated before.
"""

import re
from collections.abc import Callable

from pydantic_core import SchemaError, SchemaValidator, core_schema

MAX_PATTERN = 1_000
# About a KB of memory each, and ten microseconds.
MAX_COST = 4_000
# A class of Unicode has hundreds of ranges, `\\d` sixty.
_WIDE, _DIGITS = 75, 6
_FOLDED = 4
_TOKEN = re.compile(
    r"(?P<wide>\\(?:[wWbB]|[pP](?:\{[^}]*\}|.)))|(?P<digits>\\[dD])|\\[xuU]\{[^}]*\}|\\.|(?P<set>\[)"
    r"|(?P<begin>\()|(?P<end>\))|(?P<times>\{[\s\d,]*\})|(?P<often>[*+?])|.",
    re.DOTALL,
)
_NUMBER = re.compile(r"\d+")
_FOLDS, _SPACED = re.compile(r"\(\?[a-zA-Z-]*i"), re.compile(r"\(\?[a-zA-Z-]*x")


def matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return whether a text has a match of the pattern; None if the pattern is too long, too costly or is none."""
    if len(pattern) > MAX_PATTERN or cost_of(pattern) > MAX_COST:
        return None
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
        ).isinstance_python
    except SchemaError:
        return None


def cost_of(pattern: str) -> int:
    """Return what it costs to compile a pattern, rather too much than too little.

    A counted repetition costs its part as often as it says: `last` is that of the part before, which is in `sums`.
    """
    if _SPACED.search(pattern):
        # What a repetition is of may stand far before it.
        return MAX_COST + 1
    sums, last, place = [0], 0, 0
    factor = _FOLDED if _FOLDS.search(pattern) else 1
    while match := _TOKEN.match(pattern, place):
        place = match.end()
        if match["times"] and last:
            more = last * (max(map(int, _NUMBER.findall(match["times"])), default=1) - 1)
            sums[-1], last = sums[-1] + more, last + more
        elif match["often"]:
            sums[-1] += last
        elif match["begin"]:
            sums.append(0)
        elif match["end"] and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        else:
            last, place = _set_cost(pattern, place) if match["set"] else (_atom_cost(match), place)
            sums[-1] += last * factor
            last *= factor
        if sums[-1] > MAX_COST:
            return sums[-1]
    return sum(sums)


def _atom_cost(match: re.Match[str]) -> int:
    return _WIDE if match["wide"] else _DIGITS if match["digits"] else 1


def _set_cost(pattern: str, place: int) -> tuple[int, int]:
    """Return the cost of a set of characters, whose `[` is before this place, and the place after it."""
    depth, begin = 1, place
    while place < len(pattern) and depth:
        if pattern[place] == "\\":
            place += 1
        elif pattern[place] in "[]" and not (pattern[place] == "]" and pattern[begin:place] in ("", "^")):
            depth += 1 if pattern[place] == "[" else -1
        place += 1
    inside = pattern[begin:place]
    wide = _WIDE if re.search(r"\\[wWpP]|\[:", inside) else 0
    return wide + (_DIGITS if re.search(r"\\[dD]", inside) else 0) + len(inside) // 2 + 1, place
