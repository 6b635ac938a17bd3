"""A request without the values in it: `delete the file "notes.txt"` asks for what `delete the file` asks for.

Names, ids, paths and numbers are what a tool is given, not what it does; in a vector they drown the wish.
"""

import re

from toolscript.model.words import STOP_WORDS

_VALUES = re.compile(
    r"""<[^<>\n]{1,60}>
    | "[^"\n]{1,200}"
    | “[^”\n]{1,200}”
    | (?<!\w)'[^'\n]{1,120}'(?!\w)
    | `[^`\n]{1,200}`
    | https?://\S{1,500}
    | \{[^{}]{0,400}\}
    | \[[^\[\]]{1,200}\]
    | (?<!\S)[^\s@]{1,64}@[^\s@]{1,190}(?!\S)
    | (?<![\w/])/(?:[\w.-]{1,100}/){1,20}[\w.-]{0,100}
    | \b\d[\d.,:%-]{0,60}\b
    | \b(?=[^\W\d]{0,60}\d)\w{9,}\b""",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_SPACE = re.compile(r"\s+")

# With fewer words than these left, the values were the request.
FEWEST_WORDS = 2


def without_values(text: str) -> str:
    left = _SPACE.sub(" ", _VALUES.sub(" ", text)).strip()
    said = [word for word in _WORD.findall(left.casefold()) if word not in STOP_WORDS]
    return left if len(said) >= FEWEST_WORDS else text
