"""Searches of tools and of the library, counted by what became of them."""

from collections.abc import Iterable, Sized
from typing import Protocol

from toolscript.adapters.telemetry.figures import Figures
from toolscript.adapters.telemetry.labels import DEGRADED, EMPTY, ERROR, KNOWLEDGE, OK, REFUSED, TOOLS
from toolscript.errors import Rejected, SetupError, ToolscriptError, Unavailable
from toolscript.model.knowledge import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
)
from toolscript.model.library import Source
from toolscript.model.queries import SkillQuery, ToolQuery, settled
from toolscript.model.results import SkillAnswer, ToolAnswer

OUR_FAULT = (Unavailable, Rejected, SetupError)


def outcome_of(hits: Sized, degraded: Iterable[str]) -> str:
    if degraded:
        return DEGRADED
    return OK if hits else EMPTY


def is_refusal(error: BaseException) -> bool:
    return isinstance(error, ToolscriptError) and not isinstance(error, OUR_FAULT)


def outcome_of_error(error: BaseException) -> str:
    return REFUSED if is_refusal(error) else ERROR


class SearchesTools(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


class SearchesLibrary(Protocol):
    async def search(self, query: KnowledgeQuery, /) -> KnowledgeAnswer: ...
    async def source(self, source_id: str, /) -> Source: ...
    async def sources(self, query: SourcesQuery, /) -> SourcesAnswer: ...
    async def passage(self, query: PassageQuery, /) -> PassageAnswer: ...


class CountedToolSearch:
    def __init__(self, search: SearchesTools, figures: Figures) -> None:
        self._search = search
        self._figures = figures

    async def search(self, query: ToolQuery) -> ToolAnswer:
        kind = str(settled(query).search_type)
        try:
            answer = await self._search.search(query)
        except Exception as error:
            self._figures.searched(TOOLS, kind, outcome_of_error(error))
            raise
        self._figures.searched(TOOLS, kind, outcome_of(answer.hits, answer.degraded), answer.degraded)
        return answer

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        return await self._search.skills(query)


class CountedKnowledgeSearch:
    def __init__(self, search: SearchesLibrary, figures: Figures) -> None:
        self._search = search
        self._figures = figures

    async def search(self, query: KnowledgeQuery) -> KnowledgeAnswer:
        kind = query.search_type.value
        try:
            answer = await self._search.search(query)
        except Exception as error:
            self._figures.searched(KNOWLEDGE, kind, outcome_of_error(error))
            raise
        self._figures.searched(KNOWLEDGE, kind, outcome_of(answer.hits, answer.degraded), answer.degraded)
        return answer

    async def source(self, source_id: str) -> Source:
        return await self._search.source(source_id)

    async def sources(self, query: SourcesQuery) -> SourcesAnswer:
        return await self._search.sources(query)

    async def passage(self, query: PassageQuery) -> PassageAnswer:
        return await self._search.passage(query)
