"""Whether a text names a skill the way only somebody does who knows the skills: by its id, or by its whole name.

Who wants an item to be somewhere has to say where; who describes an item has no reason to.
"""

import re
from collections.abc import Sequence

from toolscript.model.skills import Skill
from toolscript.model.words import words_of

# A name with these is written as nobody speaks: "Crypto & Blockchain".
SIGNS = re.compile(r"[&+/|,:]")
# With fewer words, the signs have to be there as well.
ENOUGH_WORDS = 3

Words = tuple[str, ...]


class SkillNames:
    """By the first word of each, so that a text is held against few of them, however many skills there are."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._certain: dict[str, set[tuple[Words, str]]] = {}
        self._phrases: dict[str, set[str]] = {}
        for skill in skills:
            words = tuple(words_of(skill.name))
            if len(words) > 1 and SIGNS.search(skill.name):
                literally = "" if len(words) >= ENOUGH_WORDS else skill.name.casefold()
                self._certain.setdefault(words[0], set()).add((words, literally))
            elif len(words) > 1 and skill.name != skill.name.lower():
                self._phrases.setdefault(words[0], set()).add(skill.name)
            if "_" in skill.id:
                # An id is one word when it is written as one.
                word = skill.id.replace("_", "")
                self._certain.setdefault(word, set()).add(((word,), ""))

    def are_in(self, text: str, but: frozenset[str] = frozenset()) -> bool:
        """`but` are words that are the item's own: a tool may be called like a skill."""
        words, letters = tuple(words_of(text)), text.casefold()
        return any(
            words[at : at + len(name)] == name and literally in letters and not but.issuperset(name)
            for at, word in enumerate(words)
            for name, literally in self._certain.get(word, ())
        )

    def may_be_in(self, text: str) -> bool:
        """A name of plain words, with its capitals: somebody may have meant the skill."""
        return any(phrase in text for word in set(words_of(text)) for phrase in self._phrases.get(word, ()))
