"""Which skills' keywords an item says: whole words by their stems, phrases in order, wherever they stand."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.model.items import Item
from toolscript.model.skills import Skill
from toolscript.model.words import terms_of_word, words_of

# A name says what an item is; a description says much else besides, and a server's is about others too.
NAME, SERVER, DESCRIPTION, SERVER_DESCRIPTION = 1.0, 0.6, 0.4, 0.2

Stems = tuple[int, ...]


@dataclass(frozen=True)
class Keyword:
    """`skills` are their rows; a keyword that many skills have says less."""

    text: str
    skills: NDArray[np.intp]
    rarity: float


@dataclass(frozen=True)
class Said:
    """A keyword that an item says, and how much that counts."""

    keyword: Keyword
    weight: float


class KeywordIndex:
    """By the first stem of each, so that an item is held against few of them, however many skills there are."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        rows: dict[Stems, dict[int, str]] = {}
        for row, skill in enumerate(skills):
            for text in skill.keywords:
                rows.setdefault(stems_of(text), {}).setdefault(row, text)
        self._by_first: dict[int, list[tuple[Stems, Keyword]]] = {}
        for stems, of_rows in rows.items():
            if stems:
                self._add(stems, of_rows, len(skills))

    def said_by(self, item: Item) -> list[Said]:
        """Each keyword once, for the field in which it counts most."""
        found: dict[str, Said] = {}
        for text, weight in _fields(item):
            for keyword in self._in(stems_of(text)):
                found.setdefault(keyword.text, Said(keyword, weight * keyword.rarity))
        return list(found.values())

    def _add(self, stems: Stems, of_rows: Mapping[int, str], skills: int) -> None:
        rarity = math.log1p(skills / len(of_rows)) / math.log1p(skills)
        keyword = Keyword(next(iter(of_rows.values())), np.array(list(of_rows), dtype=np.intp), rarity)
        joined = stems_of(keyword.text.replace(" ", ""))
        # Who writes "time zone" means "timezone" too.
        for form in {stems, joined} if len(joined) == 1 else {stems}:
            self._by_first.setdefault(form[0], []).append((form, keyword))

    def _in(self, stems: Stems) -> Iterator[Keyword]:
        for at, first in enumerate(stems):
            for form, keyword in self._by_first.get(first, ()):
                if stems[at : at + len(form)] == form:
                    yield keyword


def _fields(item: Item) -> Iterator[tuple[str, float]]:
    """The weightiest first."""
    yield item.name, NAME
    yield item.server, SERVER
    yield item.description, DESCRIPTION
    yield item.server_description, SERVER_DESCRIPTION


def stems_of(text: str) -> Stems:
    return tuple(terms_of_word(word)[0] for word in words_of(text))
