"""One search on its way through the stages."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from toolscript.model.queries import ToolQuery
from toolscript.ports import Spans
from toolscript.search.deadline import Deadline
from toolscript.search.fallbacks import Attempt, IsOverloaded, never_overloaded
from toolscript.search.no_spans import NO_SPANS
from toolscript.search.ranking import Request, read_request
from toolscript.search.stages import Stages

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    query: ToolQuery
    request: Request
    attempt: Attempt
    stages: Stages
    spans: Spans = NO_SPANS

    @classmethod
    def now(
        cls,
        query: ToolQuery,
        deadline_seconds: float,
        spans: Spans = NO_SPANS,
        is_overloaded: IsOverloaded = never_overloaded,
    ) -> "Asked":
        stages = Stages()
        attempt = Attempt(Deadline(deadline_seconds), is_overloaded=is_overloaded)
        request = read_request(query.text)
        stages.end("ranking")
        return cls(query, request, attempt, stages, spans)


@contextmanager
def begun(work: Coroutine[Any, Any, T]) -> Iterator[asyncio.Task[T]]:
    """Goes on beside what is done meanwhile, and not for longer than that."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
