"""What a request wants done, and what a tool's name says it does: creating is not deleting, however alike."""

import re
from collections.abc import Iterable, Iterator

from toolscript.search.ranking.english import ACTIONS, LEAD_IN, PHRASES

FIRST_WORDS = 14

_PHRASES = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:'\w+)?")
_KINDS_OF = {
    word: frozenset(kind for kind, words in ACTIONS.items() if word in words)
    for word in frozenset().union(*ACTIONS.values())
}


def without_phrases(text: str) -> str:
    """A phrase that means one word is that word: nothing is got by getting rid of it."""
    return _PHRASES.sub(lambda found: PHRASES.get(found[0].casefold(), found[0]), text)


def words_in_order(text: str) -> list[str]:
    return _WORD.findall(without_phrases(text).casefold())


def kinds_of(word: str) -> frozenset[str]:
    """The kinds of action a word stands for, in whichever form it is said."""
    return next((_KINDS_OF[form] for form in _forms(word) if form in _KINDS_OF), frozenset())


def action_asked(words: Iterable[str]) -> frozenset[str]:
    """Of the first verb of a wish: what follows it is what it is to be done with.

    After other words only a plain form is a verb: the changes of `commit my changes` change nothing.
    """
    begins = list(words)[:FIRST_WORDS]
    first, *others = [word for word in begins if word not in LEAD_IN or word in _KINDS_OF] or [""]
    return kinds_of(first) or next((_KINDS_OF[word] for word in others if word in _KINDS_OF), frozenset())


def actions_named(name_words: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(kinds_of(word) for word in name_words))


def agreement(asked: frozenset[str], named: frozenset[str]) -> float:
    """1 when they meet, -1 when both speak and do not, 0 when one is silent."""
    if not asked or not named:
        return 0.0
    return 1.0 if asked & named else -1.0


def _forms(word: str) -> Iterator[str]:
    yield word
    if word.endswith("ing"):
        yield from (word[:-3], word[:-3] + "e")
    if word.endswith("s"):
        yield word[:-1]
    if word.endswith("ed"):
        yield from (word[:-2], word[:-1])
