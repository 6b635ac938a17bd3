"""What the core asks of the world, asked through somebody who counts."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Protocol

from toolscript.core.auth.model import Budget, Caller, Callers, Plan, RequestBudget, Stranger, Tenant
from toolscript.core.errors import Unauthorized
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder, Spans
from toolscript.server.metrics import Figures, reason_of, timed

SEARCH = "search."


class CountsEmbedding(Protocol):
    def embedded(self, kind: str, seconds: float, /, *, failed: bool) -> None: ...


class MeasuredSpans:
    """Spans of a product's searches are its stages."""

    def __init__(self, spans: Spans, figures: Figures, product: str) -> None:
        self._spans = spans
        self._figures = figures
        self._product = product

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:
        inner = self._spans.span(name, **facts)
        if not name.startswith(SEARCH):
            return inner
        return _Measured(inner, partial(self._figures.stage, self._product, name.removeprefix(SEARCH)))


class _Measured(AbstractContextManager[None]):
    __slots__ = ("_began", "_inner", "_took")

    def __init__(
        self, inner: AbstractContextManager[None], took: Callable[[float, type[BaseException] | None], None]
    ) -> None:
        self._inner, self._took = inner, took
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace_back)
        self._took(time.perf_counter() - self._began, kind)


class MeasuredEmbedder:
    """To be put behind a cache: what is remembered was not embedded."""

    def __init__(self, embedder: Embedder, figures: CountsEmbedding) -> None:
        self._embedder = embedder
        self._figures = figures

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await timed(self._figures.embedded, "query", self._embedder.embed_query(text))

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return await timed(self._figures.embedded, "passages", self._embedder.embed_passages(texts))


class CountedCallers:
    def __init__(self, callers: Callers, figures: Figures) -> None:
        self._callers = callers
        self._figures = figures

    async def verify(self, token: str) -> Caller:
        try:
            return await self._callers.verify(token)
        except Unauthorized as error:
            self._figures.token_refused(reason_of(error))
            raise


class CountedBudget:
    def __init__(self, budget: RequestBudget, figures: Figures) -> None:
        self._budget = budget
        self._figures = figures

    async def take(self, who: Tenant | Stranger, plan: Plan) -> Budget:
        taken = await self._budget.take(who, plan)
        if not taken.allowed:
            self._figures.rate_limited()
        return taken
