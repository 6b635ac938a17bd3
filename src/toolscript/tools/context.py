"""The context of one search, passed through its stages, and the log lines of the stages."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from toolscript.core.retrieval.curation import NO_CURATION, CuratedRequest, Curation, Rule, Tool
from toolscript.core.retrieval.deadline import Attempt, Deadline
from toolscript.core.retrieval.ports import Spans
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.request import Request, parse_query
from toolscript.core.retrieval.rewriting import default_rewriter
from toolscript.core.retrieval.timings import NO_SPANS, Stages
from toolscript.tools.model.answer import MatchedSkill, ToolHit
from toolscript.tools.model.query import ToolQuery

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchContext:
    """`promoted` and `excluded` are items by id, with the rule of a person; `rules` say what all rules did.

    `steps` are the sub-queries of a request for several things.
    """

    query: ToolQuery
    request: Request
    attempt: Attempt
    stages: Stages
    spans: Spans = NO_SPANS
    steps: tuple[CuratedRequest, ...] = ()
    promoted: Mapping[Tool, Rule] = field(default_factory=dict)
    excluded: Mapping[Tool, Rule] = field(default_factory=dict)
    rules: tuple[str, ...] = ()

    @property
    def read_as(self) -> str | None:
        """The query as it was read, if that is not how it was typed."""
        return None if self.request.text == self.query.text else self.request.text

    def read(self, keeps: Callable[[str], bool]) -> "SearchContext":
        """Return the context with the words that `keeps` holds for read as they are typed."""
        if self.request.reading is None or self.request.text == self.query.text:
            return self
        return replace(self, request=parse_query(default_rewriter().read(self.query.text, keeps)))

    def corrected(self, corrections: Mapping[str, str]) -> "SearchContext":
        """Return the context with misspelt words of the request read as words of the catalog."""
        request = parse_query(self.request.reading or self.query.text, corrections)
        return replace(self, request=request, steps=NO_CURATION.apply(request).steps)

    def curated(self, curation: Curation) -> "SearchContext":
        """Return the context with the rules that apply to the request."""
        if not curation.rules:
            return self
        curated = curation.apply(self.request)
        return replace(
            self,
            request=curated.request,
            steps=curated.steps,
            promoted=curated.promoted,
            excluded=curated.excluded,
            rules=curated.notes,
        )

    @classmethod
    def now(
        cls,
        query: ToolQuery,
        deadline_seconds: float,
        spans: Spans = NO_SPANS,
    ) -> "SearchContext":
        stages = Stages()
        attempt = Attempt(Deadline(deadline_seconds))
        is_read = query.search_type is SearchType.HYBRID
        request = parse_query(default_rewriter().read(query.text) if is_read else query.text)
        stages.end("ranking")
        return cls(query, request, attempt, stages, spans, NO_CURATION.apply(request).steps)


@contextmanager
def start_background(work: Coroutine[Any, Any, T]) -> Iterator[asyncio.Task[T]]:
    """Run the work as a task while the block runs; cancel it when the block ends."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()


def log_skills(query: ToolQuery, skills: Iterable[MatchedSkill]) -> None:
    _log(query, "Stage 1 - Matched skills: %s", ((skill.id, skill.score) for skill in skills))


def log_tools(query: ToolQuery, hits: Iterable[ToolHit]) -> None:
    _log(query, "Stage 2 - Matched tools: %s", ((hit.name, hit.score) for hit in hits))


def _log(query: ToolQuery, line: str, scored: Iterable[tuple[str, float | None]]) -> None:
    """Log at INFO only in literal mode: at every search of a busy service this would be most of the log."""
    level = logging.INFO if query.search_type is SearchType.SEMANTIC else logging.DEBUG
    if logger.isEnabledFor(level):
        logger.log(level, line, list(scored))
