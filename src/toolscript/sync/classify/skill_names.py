"""Whether a text names a skill the way only somebody does who knows the skills: by its id, or by its whole name.

Who wants an item to be somewhere has to say where; who describes an item has no reason to.
"""

import re
from collections.abc import Sequence

from toolscript.model.skills import Skill
from toolscript.model.words import words_of

# Shorter ones are phrases that people use, unless they are written as nobody speaks: "Crypto & Blockchain".
FEWEST_WORDS_OF_A_NAME = 3
SIGNS = re.compile(r"[&+/|,:]")

Words = tuple[str, ...]


class SkillNames:
    """By the first word of each, so that a text is held against few of them, however many skills there are."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._by_first: dict[str, set[tuple[Words, str]]] = {}
        self._phrases: dict[str, set[str]] = {}
        for skill in skills:
            words = tuple(words_of(skill.name))
            if len(words) >= FEWEST_WORDS_OF_A_NAME:
                self._add(words, "")
            elif len(words) > 1 and SIGNS.search(skill.name):
                self._add(words, skill.name.casefold())
            elif len(words) > 1 and skill.name.istitle():
                self._phrases.setdefault(words[0], set()).add(skill.name)
            if "_" in skill.id:
                # An id is one word when it is written as one.
                self._add((skill.id.replace("_", ""),), "")

    def are_in(self, text: str, but: frozenset[str] = frozenset()) -> bool:
        """`but` are words that are the item's own: a tool may be called like a skill."""
        words, letters = tuple(words_of(text)), text.casefold()
        return any(
            words[at : at + len(name)] == name and literally in letters and not but.issuperset(name)
            for at, word in enumerate(words)
            for name, literally in self._by_first.get(word, ())
        )

    def may_be_in(self, text: str) -> bool:
        """A name of two plain words, in capitals as in a title: somebody may have meant the skill."""
        return any(phrase in text for word in set(words_of(text)) for phrase in self._phrases.get(word, ()))

    def _add(self, words: Words, literally: str) -> None:
        self._by_first.setdefault(words[0], set()).add((words, literally))
