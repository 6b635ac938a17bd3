"""How answers from the library read: where it stands in one line, and then what it says."""

from collections.abc import Sequence

from toolscript.model.knowledge import KnowledgeAnswer, KnowledgeHit, PassageAnswer, SourcesAnswer
from toolscript.model.library import Position, Source

NOTHING = "Nothing in the library fits. Say it in other words, or without filters; list_sources lists what it has."


def knowledge_text(answer: KnowledgeAnswer) -> str:
    if not answer.hits:
        return _with_failures(NOTHING, answer.degraded)
    hits = [_hit(number, hit) for number, hit in enumerate(answer.hits, 1)]
    return _with_failures("\n\n".join(hits), answer.degraded)


def passage_text(answer: PassageAnswer) -> str:
    chunks = [f"[{_where(chunk.position)}chunk_id {chunk.id}]\n{chunk.content}" for chunk in answer.chunks]
    return "\n\n".join([_source_line(answer.source), *chunks])


def source_text(source: Source) -> str:
    facts = [f"{name}: {value}" for name, value in source.metadata.items()]
    return "\n".join([_source_line(source), *facts])


def sources_text(answer: SourcesAnswer) -> str:
    if not answer.sources:
        return "There are none."
    lines = list(map(_source_line, answer.sources))
    return "\n".join([*lines, f"There are more: after {answer.next_after}."] if answer.next_after else lines)


def _hit(number: int, hit: KnowledgeHit) -> str:
    kind = f"{hit.type}, " if hit.type else ""
    facts = f"{_where(hit.position)}{kind}score {hit.score:.4f}, chunk_id {hit.chunk_id}"
    return f"[{number}] {hit.source.title}: {facts}\n{hit.content}"


def _where(position: Position) -> str:
    """With a comma behind it, if there is anything to say."""
    headings = dict.fromkeys(one for one in (position.chapter, position.section) if one)
    places = [" > ".join(headings)] if headings else []
    if position.page is not None:
        places.append(f"page {position.page}")
    elif position.line is not None:
        places.append(f"line {position.line}")
    return "".join(f"{one}, " for one in places)


def _source_line(source: Source) -> str:
    by = f" by {', '.join(source.authors)}" if source.authors else ""
    topics = f"; {', '.join(source.topics)}" if source.topics else ""
    return f"{source.title}{by} ({source.type}, {source.chunk_count} passages{topics}), source_id {source.id}"


def _with_failures(text: str, degraded: Sequence[str]) -> str:
    return f"{text}\n\nNot all of the search worked: {', '.join(degraded)}." if degraded else text
