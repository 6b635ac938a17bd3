"""The tools of the library: each is a question to it, and the same answer that HTTP gives."""

from toolscript.model.items import JsonObject
from toolscript.model.knowledge import (
    MOST_NEIGHBOURS,
    MOST_RESULTS,
    MOST_SOURCES,
    USUAL_RESULTS,
    KnowledgeQuery,
    PassageQuery,
    SourcesQuery,
    shows_both,
)
from toolscript.model.knowledge_json import knowledge_json, passage_json, source_json, sources_json
from toolscript.model.queries import SearchType
from toolscript.model.servers import CallResult
from toolscript.model.tenancy import Scope, Visitor
from toolscript.surfaces.mcp.answers import result
from toolscript.surfaces.mcp.argument_reading import one_of, require_known, text, text_or_texts, truth, whole
from toolscript.surfaces.mcp_service.knowledge_definitions import (
    DEFAULT_LIMIT,
    DEFAULT_SOURCES,
    DEFINITIONS,
    GET_PASSAGE,
    GET_SOURCE,
    LIST_SOURCES,
    SEARCH_KNOWLEDGE,
)
from toolscript.surfaces.mcp_service.knowledge_text import knowledge_text, passage_text, source_text, sources_text
from toolscript.surfaces.mcp_service.parts import AsksLibrary, ServiceTool

ARGUMENTS = ("query", "limit", "type", "topics", "source_id", "search_type", "include_both")


def knowledge_tools(library: AsksLibrary, usual: SearchType = SearchType.HYBRID) -> list[ServiceTool]:
    """`usual`: how is searched where nothing is said of it."""

    async def search(_: Visitor, given: JsonObject) -> CallResult:
        answer = await library.search(_query(given, usual))
        return result(knowledge_text(answer), knowledge_json(answer))

    async def passage(_: Visitor, given: JsonObject) -> CallResult:
        answer = await library.passage(_passage(given))
        return result(passage_text(answer), passage_json(answer))

    async def source(_: Visitor, given: JsonObject) -> CallResult:
        require_known(GET_SOURCE, given, ("source_id",))
        found = await library.source(text(given, "source_id"))
        return result(source_text(found), source_json(found))

    async def sources(_: Visitor, given: JsonObject) -> CallResult:
        answer = await library.sources(_sources(given))
        return result(sources_text(answer), sources_json(answer))

    calls = {SEARCH_KNOWLEDGE: search, GET_PASSAGE: passage, GET_SOURCE: source, LIST_SOURCES: sources}
    return [ServiceTool(DEFINITIONS[name], Scope.KNOWLEDGE_READ, call) for name, call in calls.items()]


def _query(given: JsonObject, usual: SearchType) -> KnowledgeQuery:
    require_known(SEARCH_KNOWLEDGE, given, ARGUMENTS)
    search_type = SearchType(one_of(given, "search_type", tuple(dict.fromkeys((usual, *SearchType)))))
    is_literal = search_type is SearchType.SEMANTIC
    return KnowledgeQuery(
        text(given, "query"),
        whole(given, "limit", USUAL_RESULTS if is_literal else DEFAULT_LIMIT, 1, MOST_RESULTS),
        text_or_texts(given, "type"),
        text_or_texts(given, "topics"),
        text_or_texts(given, "source_id"),
        search_type,
        shows_both(truth(given, "include_both") if "include_both" in given else None, search_type),
    )


def _passage(given: JsonObject) -> PassageQuery:
    require_known(GET_PASSAGE, given, ("chunk_id", "before", "after"))
    before, after = (whole(given, name, 1, 0, MOST_NEIGHBOURS) for name in ("before", "after"))
    return PassageQuery(text(given, "chunk_id"), before, after)


def _sources(given: JsonObject) -> SourcesQuery:
    require_known(LIST_SOURCES, given, ("limit", "after", "type", "topics"))
    return SourcesQuery(
        whole(given, "limit", DEFAULT_SOURCES, 1, MOST_SOURCES),
        text(given, "after", ""),
        text_or_texts(given, "type"),
        text_or_texts(given, "topics"),
    )
