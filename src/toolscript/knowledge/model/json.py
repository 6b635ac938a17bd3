"""Answers about a library as every surface gives them."""

from collections.abc import Sequence

from toolscript.knowledge.model.library import Chunk, Source
from toolscript.knowledge.model.query import KnowledgeAnswer, KnowledgeHit, PassageAnswer, SourcesAnswer


def knowledge_json(answer: KnowledgeAnswer) -> dict[str, object]:
    cited = dict.fromkeys(hit.source.title for hit in answer.hits)
    return {
        "results": [_hit(hit) for hit in answer.hits],
        "metadata": {
            "query": answer.query,
            "sources_cited": list(cited),
            "result_count": len(answer.hits),
            "search_type": answer.search_type.value,
            "took_ms": round(answer.took_ms, 2),
            "degraded": list(answer.degraded),
        },
    }


def source_json(source: Source) -> dict[str, object]:
    """Where it lies is left out: that is nobody's business but that of whoever runs the library."""
    return {
        "source_id": source.id,
        "type": source.type,
        "title": source.title,
        "authors": list(source.authors),
        "topics": list(source.topics),
        "ingested_at": source.ingested_at,
        "status": source.status.value,
        "chunk_count": source.chunk_count,
        "metadata": dict(source.metadata),
    }


def sources_json(answer: SourcesAnswer) -> dict[str, object]:
    return {"sources": list(map(source_json, answer.sources)), "next_after": answer.next_after}


def passage_json(answer: PassageAnswer) -> dict[str, object]:
    return {"source": source_json(answer.source), "chunks": _chunks(answer.chunks)}


def _hit(hit: KnowledgeHit) -> dict[str, object]:
    extraction = {"extraction_type": hit.type} if hit.type else {}
    return {
        "id": hit.id,
        "score": round(hit.score, 4),
        "type": hit.kind,
        **extraction,
        "content": hit.content,
        "topics": list(hit.topics),
        "source": {
            "source_id": hit.source.id,
            "chunk_id": hit.chunk_id,
            "title": hit.source.title,
            "authors": list(hit.source.authors),
            "position": dict(vars(hit.position)),
        },
    }


def _chunks(chunks: Sequence[Chunk]) -> list[dict[str, object]]:
    return [
        {
            "chunk_id": chunk.id,
            "number": chunk.number,
            "content": chunk.content,
            "position": dict(vars(chunk.position)),
            "token_count": chunk.token_count,
        }
        for chunk in chunks
    ]
