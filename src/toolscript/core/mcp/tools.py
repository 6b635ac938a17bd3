"""What the tools ask of the service. What an installation does not have is None, and has no tools."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolscript.model.items import JsonObject, StoredItem
from toolscript.model.knowledge import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
)
from toolscript.model.library import Source
from toolscript.model.queries import SearchType, ToolQuery
from toolscript.model.results import ToolAnswer
from toolscript.model.servers import CallResult
from toolscript.model.skills import SkillEntry
from toolscript.model.tenancy import Scope, Visitor
from toolscript.surfaces.http.document_parts import DocumentRoutes


class AsksLibrary(Protocol):
    async def search(self, query: KnowledgeQuery, /) -> KnowledgeAnswer: ...
    async def source(self, source_id: str, /) -> Source: ...
    async def sources(self, query: SourcesQuery, /) -> SourcesAnswer: ...
    async def passage(self, query: PassageQuery, /) -> PassageAnswer: ...


class SearchesTools(Protocol):
    async def search(self, query: ToolQuery, /) -> ToolAnswer: ...


class ReadsItems(Protocol):
    async def items(self, ids: Sequence[int], /) -> Sequence[StoredItem]: ...


class ListsSkills(Protocol):
    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]: ...


@dataclass(frozen=True)
class CatalogParts:
    search: SearchesTools
    items: ReadsItems
    skills: ListsSkills


@dataclass(frozen=True)
class ServiceParts:
    """`search_type` is for searches that name none."""

    knowledge: AsksLibrary | None = None
    catalog: CatalogParts | None = None
    documents: DocumentRoutes | None = None
    search_type: SearchType = SearchType.HYBRID


OK, REFUSED, ERROR = "ok", "refused", "error"
# Method, tool (empty where none is called), outcome, seconds.
ObserveMcp = Callable[[str, str, str, float], None]

Call = Callable[[Visitor, JsonObject], Awaitable[CallResult]]


@dataclass(frozen=True)
class ServiceTool:
    """`for_a_tenant`: on whose behalf it is called has to be known."""

    definition: JsonObject
    scope: Scope
    call: Call
    for_a_tenant: bool = False

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    def is_for(self, visitor: Visitor) -> bool:
        return visitor.may(self.scope) and (visitor.caller is not None or not self.for_a_tenant)
