"""Which skill of the default taxonomy an item belongs to, for the reason a person reads."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from toolscript.model.words import terms_of_word, words_of

WEIGHTS = {"name": 3.0, "server": 2.0, "description": 1.0}
LEAST = 2.0


Keyword = frozenset[int]


def domain_of(fields: Mapping[str, list[str]]) -> str:
    """The domain most of whose keywords an item with these words has; empty when none stands out."""
    names, by_stem = _domains()
    stems = {field: frozenset(terms_of_word(word)[0] for word in fields[field]) for field in WEIGHTS}
    scores = [0.0] * len(names)
    for stem in frozenset().union(*stems.values()):
        for domain, keyword in by_stem.get(stem, ()):
            scores[domain] += max((WEIGHTS[field] for field in WEIGHTS if keyword <= stems[field]), default=0.0)
    best = max(range(len(names)), key=scores.__getitem__)
    return names[best] if scores[best] >= LEAST else ""


@cache
def _domains() -> tuple[tuple[str, ...], Mapping[int, Sequence[tuple[int, Keyword]]]]:
    """The domains' names, and their keywords by one stem of each: an item is held against few of them."""
    skills = json.loads((files("toolscript.model") / "default_taxonomy.json").read_text("utf-8"))
    by_stem: dict[int, list[tuple[int, Keyword]]] = {}
    for domain, skill in enumerate(skills):
        for words in skill["keywords"]:
            keyword = frozenset(terms_of_word(word)[0] for word in words_of(words))
            by_stem.setdefault(min(keyword), []).append((domain, keyword))
    return tuple(str(skill["name"]).lower() for skill in skills), by_stem
