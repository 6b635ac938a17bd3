"""A judged set: a catalog, queries, and which items answer which; and what a judge says of an engine."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from toolscript.model.items import Item
from toolscript.model.queries import Strategy


@dataclass(frozen=True)
class JudgedQuery:
    """`relevant` grades items by key; `steps` are all needed, and any item of a step will do.

    A query that nothing fits has neither.
    """

    id: str
    text: str
    relevant: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[frozenset[str], ...] = ()

    @property
    def answerable(self) -> bool:
        return bool(self.relevant)


@dataclass(frozen=True)
class JudgedSet:
    """`distractors` names what was mixed in, and is empty when nothing was."""

    name: str
    items: Sequence[Item]
    queries: Sequence[JudgedQuery]
    distractors: str = ""
    documents: bool = False


@dataclass(frozen=True)
class Route:
    """Which way a query went: by what it really used, through these skills, to this share of the items.

    `skills_of` has the skills of each item by its key, the same for all queries of a catalog.
    """

    strategy: Strategy
    skills: tuple[str, ...] = ()
    share: float = 1.0
    skills_of: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_routed(self) -> bool:
        return self.strategy is not Strategy.DIRECT

    def reaches(self, key: str) -> bool:
        """Whether an item was searched at all."""
        if self.strategy is not Strategy.HIERARCHICAL:
            return True
        return not frozenset(self.skills).isdisjoint(self.skills_of.get(key, ()))


@dataclass(frozen=True)
class Given:
    """One answer: keys best first, how sure of the first, whether the engine calls it a good match.

    `stages` are milliseconds by name; `tokens` is what a model reads of the answer, None when nobody counted;
    `route` is None where there are no skills to go by.
    """

    keys: tuple[str, ...]
    confidence: float | None = None
    good_match: bool | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    route: Route | None = None


@dataclass(frozen=True)
class Measure:
    """A figure with its 95 % bootstrap interval over the queries it was measured on."""

    value: float
    low: float
    high: float
    queries: int


class SystemRole(StrEnum):
    """Ablated: the engine with one of its parts off."""

    ENGINE = "engine"
    BASELINE = "baseline"
    ABLATED = "ablated"


@dataclass(frozen=True)
class SystemReport:
    """`measures` by name (`ndcg@10`, `recall@5`, ...); `by_query` is nDCG@10 of each answerable query by id."""

    system: str
    measures: Mapping[str, Measure]
    by_query: Mapping[str, float] = field(default_factory=dict)
    role: SystemRole = SystemRole.ENGINE


@dataclass(frozen=True)
class CurvePoint:
    """What a least confidence of `threshold` would do: share of queries refused though an answer is there, share
    of queries refused when nothing fits, and when the right items are gone from the catalog."""

    threshold: float
    false_refusals: float
    refused_unanswerable: float | None = None
    refused_without_gold: float | None = None


@dataclass(frozen=True)
class CalibrationBin:
    """Of `queries` answers given about this confidence, the share whose first item is right."""

    confidence: float
    right: float
    queries: int


@dataclass(frozen=True)
class EvalReport:
    """The engine first, then the plain baselines on the same catalog, then what is left when a part is off.

    `held_out` says how the weights were fitted without this set; empty when nobody says so. `strategy` is what
    the engine was asked for.
    """

    dataset: str
    distractors: str
    engine: str
    model: str
    items: int
    queries: int
    unanswerable: int
    systems: tuple[SystemReport, ...]
    calibration: tuple[CalibrationBin, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    seed: int = 0
    held_out: str = ""
    strategy: Strategy = Strategy.DIRECT


@dataclass(frozen=True)
class EvalRequest:
    """What to judge with, and how. `count` takes a slice of the queries.

    `before` is an earlier report as data, `recipe` the weights of the ranking as data: None, the engine's own.
    """

    dataset: Path
    distractors: Path | None = None
    model: str | None = None
    count: int | None = None
    without_gold: bool = True
    ablate: bool = False
    seed: int = 0
    before: Mapping[str, object] | None = None
    recipe: Mapping[str, object] | None = None
    strategy: Strategy = Strategy.DIRECT


@dataclass(frozen=True)
class EvalResult:
    """A report as plain data for machines, and as text for people."""

    data: Mapping[str, object]
    text: str


@dataclass(frozen=True)
class WrittenPage:
    """Where a page of results and its plot are, and what they are made of."""

    page: str
    plot: str
    sets: int
    reports: int
