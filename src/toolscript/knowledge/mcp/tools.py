"""The MCP tools of the library: the responses of HTTP, and the same as text."""

from collections.abc import Sequence

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import model_result
from toolscript.core.mcp.arguments import one_of, renamed, require_known, text, text_or_texts, truth, whole, wrong
from toolscript.core.mcp.tools import ServiceTool
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.retrieval.query import SearchType, resolve_search_type
from toolscript.core.web.cursors import decode_key
from toolscript.knowledge.alias_schemas import KnowledgeToolResponse
from toolscript.knowledge.mcp.definitions import (
    DEFAULT_LIMIT,
    DEFAULT_SOURCES,
    DEFINITIONS,
    GET_PASSAGE,
    GET_SOURCE,
    LIST_SOURCES,
    SEARCH_KNOWLEDGE,
)
from toolscript.knowledge.model.library import Position, Source, is_id
from toolscript.knowledge.model.query import (
    DEFAULT_RESULTS,
    MAX_NEIGHBOURS,
    MAX_RESULTS,
    MAX_SOURCES,
    KnowledgeAnswer,
    KnowledgeHit,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
    shows_both,
)
from toolscript.knowledge.ports import LibrarySearch
from toolscript.knowledge.schemas import LibraryChunk, LibrarySource, LibrarySourcePage, types_of

NOTHING = "Nothing in the library fits. Say it in other words, or without filters; list_sources lists what it has."
GUESS = "No good match: nothing in the library seems to be about this, the first is a guess."
ARGUMENTS = (
    "query",
    "limit",
    "kind",
    "extraction_type",
    "topics",
    "source_id",
    "search_type",
    "include_both",
)


def knowledge_text(answer: KnowledgeAnswer) -> str:
    if not answer.hits:
        return _with_failures(NOTHING, answer.degraded)
    doubts = [GUESS] if answer.good_match is False else []
    hits = [_hit(number, hit) for number, hit in enumerate(answer.hits, 1)]
    return _with_failures("\n\n".join([*doubts, *hits]), answer.degraded)


def text_to_embed(answer: PassageAnswer) -> str:
    chunks = [f"[{_where(chunk.position)}chunk_id {chunk.id}]\n{chunk.content}" for chunk in answer.chunks]
    return "\n\n".join([_source_line(answer.source), *chunks])


def source_text(source: Source) -> str:
    facts = [f"{name}: {value}" for name, value in source.metadata.items()]
    return "\n".join([_source_line(source), *facts])


def sources_text(answer: SourcesAnswer, next_cursor: str | None) -> str:
    if not answer.sources:
        return "There are none."
    lines = list(map(_source_line, answer.sources))
    return "\n".join([*lines, f"There are more: cursor {next_cursor}."] if next_cursor else lines)


def _hit(number: int, hit: KnowledgeHit) -> str:
    kind = f"{hit.type}, " if hit.type else ""
    facts = f"{_where(hit.position)}{kind}score {hit.score:.4f}, chunk_id {hit.chunk_id}"
    return f"[{number}] {hit.source.title}: {facts}\n{hit.content}"


def _where(position: Position) -> str:
    """Return the position with a trailing comma, or an empty string."""
    headings = dict.fromkeys(heading for heading in (position.chapter, position.section) if heading)
    places = [" > ".join(headings)] if headings else []
    if position.page is not None:
        places.append(f"page {position.page}")
    elif position.line is not None:
        places.append(f"line {position.line}")
    return "".join(f"{place}, " for place in places)


def _source_line(source: Source) -> str:
    by = f" by {', '.join(source.authors)}" if source.authors else ""
    topics = f"; {', '.join(source.topics)}" if source.topics else ""
    return f"{source.title}{by} ({source.type}, {source.chunk_count} chunks{topics}), source_id {source.id}"


def _with_failures(text: str, degraded: Sequence[str]) -> str:
    return f"{text}\n\nNot all of the search worked: {', '.join(degraded)}." if degraded else text


def knowledge_tools(library: LibrarySearch, default: SearchType = SearchType.HYBRID) -> list[ServiceTool]:
    """Return the tools. `default` is the search type of calls that name none."""

    async def search(_: Identity, arguments: JsonObject) -> CallResult:
        answer = await library.search(_query(arguments, default))
        return model_result(knowledge_text(answer), KnowledgeToolResponse.of(answer))

    async def passage(_: Identity, arguments: JsonObject) -> CallResult:
        answer = await library.passage(_passage(arguments))
        return model_result(text_to_embed(answer), LibraryChunk.of_answer(answer))

    async def source(_: Identity, arguments: JsonObject) -> CallResult:
        require_known(GET_SOURCE, arguments, ("source_id",))
        result = await library.source(text(arguments, "source_id"))
        return model_result(source_text(result), LibrarySource.of(result))

    async def sources(_: Identity, arguments: JsonObject) -> CallResult:
        answer = await library.sources(_sources(arguments))
        page = LibrarySourcePage.of_answer(answer)
        return model_result(sources_text(answer, page.next_cursor), page)

    calls = {SEARCH_KNOWLEDGE: search, GET_PASSAGE: passage, GET_SOURCE: source, LIST_SOURCES: sources}
    return [ServiceTool(DEFINITIONS[name], Scope.KNOWLEDGE_READ, call) for name, call in calls.items()]


def _query(data: JsonObject, default: SearchType) -> KnowledgeQuery:
    require_known(SEARCH_KNOWLEDGE, data, ARGUMENTS, also=("type",))
    requested = SearchType(one_of(data, "search_type", [*SearchType])) if "search_type" in data else None
    search_type = resolve_search_type(requested, default)
    is_literal = search_type is SearchType.SEMANTIC
    return KnowledgeQuery(
        text(data, "query"),
        whole(data, "limit", DEFAULT_RESULTS if is_literal else DEFAULT_LIMIT, 1, MAX_RESULTS),
        _types(data),
        text_or_texts(data, "topics"),
        text_or_texts(data, "source_id"),
        search_type,
        shows_both(truth(data, "include_both") if "include_both" in data else None, search_type),
    )


def _types(data: JsonObject) -> tuple[str, ...]:
    """Return kinds and types of extractions; the earlier `type` had both."""
    kinds, extraction_types = text_or_texts(data, "kind"), text_or_texts(data, "extraction_type")
    if "type" not in data:
        return types_of(kinds, extraction_types)
    if kinds or extraction_types:
        raise wrong("type", "is an earlier name of kind and extraction_type: give these")
    return text_or_texts(data, "type")


def _passage(data: JsonObject) -> PassageQuery:
    require_known(GET_PASSAGE, data, ("chunk_id", "before", "after"))
    before, after = (whole(data, name, 1, 0, MAX_NEIGHBOURS) for name in ("before", "after"))
    return PassageQuery(text(data, "chunk_id"), before, after)


def _sources(arguments: JsonObject) -> SourcesQuery:
    data = renamed(arguments, type="kind")
    require_known(LIST_SOURCES, data, ("limit", "cursor", "kind", "topics"), also=("after",))
    return SourcesQuery(
        whole(data, "limit", DEFAULT_SOURCES, 1, MAX_SOURCES),
        text(data, "after", "") or decode_key(text(data, "cursor", ""), is_id),
        text_or_texts(data, "kind"),
        text_or_texts(data, "topics"),
    )
