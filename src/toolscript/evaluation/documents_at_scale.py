"""Searches in a collection of many tenants: times of two sides asked in turn, times by stage, and recall."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean

from toolscript.evaluation.nearest import recall_at
from toolscript.model.document_points import PassageAsk
from toolscript.model.filters import Filters
from toolscript.model.measurements import Latency
from toolscript.model.models import Vector
from toolscript.ports import TenantDocuments

CANDIDATES = 100

Work = Callable[[], Awaitable[object]]
Row = dict[str, object]


@dataclass
class InTurn:
    """Milliseconds of two sides, by what was asked."""

    names: tuple[str, ...]
    sides: tuple[str, str]
    spent: dict[tuple[str, ...], tuple[list[float], list[float]]] = field(default_factory=dict)

    async def ask(self, row: tuple[str, ...], first: Work, second: Work) -> None:
        """Who comes first changes: the engine has at hand what it has just read."""
        milliseconds = self.spent.setdefault(row, ([], []))
        order = ((0, first), (1, second))
        for side, work in order if len(milliseconds[0]) % 2 else order[::-1]:
            started = time.perf_counter()
            await work()
            milliseconds[side].append((time.perf_counter() - started) * 1000)

    def rows(self) -> list[Row]:
        return [self._row(row, *spent) for row, spent in self.spent.items()]

    def _row(self, row: tuple[str, ...], first: Sequence[float], second: Sequence[float]) -> Row:
        one, other = (Latency.of(name, spent) for name, spent in zip(self.sides, (first, second), strict=True))
        told: Row = dict(zip(self.names, row, strict=True))
        for side in (one, other):
            told |= {f"{side.name} p50": round(side.p50_ms, 2), f"{side.name} p95": round(side.p95_ms, 2)}
        ratios = {
            "p50 ratio": round(one.p50_ms / other.p50_ms, 3),
            "p95 ratio": round(one.p95_ms / other.p95_ms, 3),
        }
        return told | ratios | {"of": one.count}


@dataclass
class StageTimes:
    """Whoever searches says what it is doing, and this how long it took."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def span(self, name: str, **_: str | float | bool) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.milliseconds.setdefault(name.removeprefix("search."), []).append(spent)

    def row(self) -> Row:
        return {stage: round(Latency.of(stage, spent).p50_ms, 2) for stage, spent in self.milliseconds.items()}


@dataclass
class Recalls:
    """What the dense arm finds of what an exact search finds, by what was asked; of a question with an answer."""

    names: tuple[str, ...]
    shares: dict[tuple[str, ...], list[tuple[float, float]]] = field(default_factory=dict)

    async def ask(
        self, row: tuple[str, ...], documents: TenantDocuments, vector: Vector, filters: Filters
    ) -> None:
        ask = PassageAsk(vector, None, filters, CANDIDATES)
        found = (await documents.search(ask)).dense or ()
        exact = (await documents.search(PassageAsk(vector, None, filters, CANDIDATES, exact=True))).dense or ()
        listed = self.shares.setdefault(row, [])
        if exact:
            listed.append((recall_at(found, exact, 10), recall_at(found, exact, CANDIDATES)))

    def rows(self) -> list[Row]:
        return [
            dict(zip(self.names, row, strict=True))
            | {
                "recall@10": round(fmean(ten for ten, _ in shares), 4),
                "recall@100": round(fmean(hundred for _, hundred in shares), 4),
                "of": len(shares),
            }
            for row, shares in self.shares.items()
            if shares
        ]
