"""Which skill of the default taxonomy an item belongs to, for the reason a person reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from toolscript.model.words import terms_of_word, words_of

WEIGHTS = {"name": 3.0, "server": 2.0, "description": 1.0}
LEAST = 2.0


@dataclass(frozen=True)
class _Domain:
    says: str
    keywords: tuple[frozenset[int], ...]


def domain_of(fields: Mapping[str, list[str]]) -> str:
    """The domain most of whose keywords an item with these words has; empty when none stands out."""
    stems = {field: frozenset(terms_of_word(word)[0] for word in fields[field]) for field in WEIGHTS}
    scored = [(_score(domain, stems), domain.says) for domain in _domains()]
    best, says = max(scored, key=lambda pair: pair[0])
    return says if best >= LEAST else ""


def _score(domain: _Domain, stems: dict[str, frozenset[int]]) -> float:
    return sum(
        max((weight for field, weight in WEIGHTS.items() if keyword <= stems[field]), default=0.0)
        for keyword in domain.keywords
    )


@cache
def _domains() -> tuple[_Domain, ...]:
    text = (files("toolscript.model") / "default_taxonomy.json").read_text("utf-8")
    return tuple(
        _Domain(
            str(skill["name"]).lower(),
            tuple(frozenset(terms_of_word(word)[0] for word in words_of(key)) for key in skill["keywords"]),
        )
        for skill in json.loads(text)
    )
