"""Labels that cannot become too many."""

import re
from collections.abc import Iterable

OTHER = "other"
MOST_WORDS = 40
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_ROUTE = re.compile(r"/[\x21-\x7e]{0,199}")


class FewWords:
    """Lets the first few words pass and calls all others one: whoever gives them, there is an end of series."""

    def __init__(
        self, known: Iterable[str] = (), *, most: int = MOST_WORDS, shape: re.Pattern[str] = _WORD
    ) -> None:
        self._known = set(known)
        self._most = most
        self._shape = shape

    def __call__(self, word: str) -> str:
        if word in self._known:
            return word
        if len(self._known) >= self._most or not self._shape.fullmatch(word):
            return OTHER
        self._known.add(word)
        return word


def few_routes() -> FewWords:
    """Templates of routes: as many as a program has, should somebody hand in paths instead."""
    return FewWords(most=300, shape=_ROUTE)
