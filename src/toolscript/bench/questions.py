"""What is asked of many tenants: of each size of tenant, in every way to search, with filters and without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.evaluation.many_documents import FIRST_YEAR, YEARS, Originals, TenantSize, subjects_of
from toolscript.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.model.queries import SearchType

UNIFORMLY, BY_SIZE = "any tenant", "any passage's tenant"
MOST_TINY, MOST_SMALL, MOST_MEDIUM = 20, 200, 5_000
FEWEST_WORDS, MOST_WORDS = 6, 12

# `year` and `lang` have an index, `source` has none.
FILTERS: Mapping[str, Filters] = {
    "": NO_FILTERS,
    "1 of 2": Filters(must=(FieldCondition.of("year", "gte", FIRST_YEAR + YEARS // 2),)),
    "1 of 20": Filters(must=(FieldCondition.of("lang", "eq", "fi"),)),
    "1 of 10, no index": Filters(
        must=(FieldCondition.of("source", "in", [f"source-{number}" for number in range(5)]),)
    ),
}


@dataclass(frozen=True)
class Shape:
    """A way to ask. `filtered` names one of FILTERS."""

    search_type: SearchType
    filtered: str = ""

    def __str__(self) -> str:
        return f"{self.search_type}, {self.filtered}" if self.filtered else str(self.search_type)

    @property
    def filters(self) -> Filters:
        return FILTERS[self.filtered]


PLAIN = Shape(SearchType.HYBRID)
SHAPES = (
    PLAIN,
    Shape(SearchType.SEMANTIC),
    Shape(SearchType.KEYWORD),
    *(Shape(SearchType.HYBRID, filtered) for filtered in list(FILTERS)[1:]),
    Shape(SearchType.SEMANTIC, "1 of 2"),
    Shape(SearchType.KEYWORD, "1 of 2"),
)


@dataclass(frozen=True)
class Question:
    size: TenantSize
    text: str


def classes_of(sizes: Sequence[TenantSize]) -> dict[str, list[TenantSize]]:
    """Tenants by what they have, without those classes that nobody is in."""
    largest = max(sizes, key=lambda size: size.passages)
    classes: dict[str, list[TenantSize]] = {"tiny": [], "small": [], "medium": [], "big": [], "biggest": [largest]}
    for size in sizes:
        if size is not largest:
            classes[_class_of(size)].append(size)
    return {name: listed for name, listed in classes.items() if listed}


def _class_of(size: TenantSize) -> str:
    bounds = (("tiny", MOST_TINY), ("small", MOST_SMALL), ("medium", MOST_MEDIUM))
    return next((name for name, most in bounds if size.passages <= most), "big")


def draws(sizes: Sequence[TenantSize], count: int, chance: np.random.Generator) -> dict[str, list[TenantSize]]:
    """So many tenants of each class, and of all: any of them, and in proportion to what they have."""
    shares = np.array([size.passages for size in sizes], dtype=np.float64)
    drawn = {
        UNIFORMLY: [sizes[at] for at in chance.integers(len(sizes), size=count)],
        BY_SIZE: [sizes[at] for at in chance.choice(len(sizes), count, p=shares / shares.sum())],
    }
    for name, listed in classes_of(sizes).items():
        drawn[name] = [listed[at] for at in chance.integers(len(listed), size=count)]
    return drawn


def question_for(originals: Originals, size: TenantSize, seed: int, chance: np.random.Generator) -> Question:
    """A few words in a row of something the tenant has documents about."""
    words = originals.texts[int(chance.choice(subjects_of(originals, size, seed)))].split()
    length = int(chance.integers(FEWEST_WORDS, MOST_WORDS + 1))
    start = int(chance.integers(max(1, len(words) - length)))
    return Question(size, " ".join(words[start : start + length]))
