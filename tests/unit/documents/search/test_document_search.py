"""Document search: its hits, their content, and the details of a response."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.doubles import MemorySpans
from tests.unit.documents.search.builders import ACME, CARD, OTHER, Corpus, document, long_text
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.errors import BlankQuery, EmbedderUnavailable, IndexUnavailable, InvalidRequest, PlanExceeded
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.results import Exactness, FoundChunks, Total
from toolscript.documents.model.filters import FieldCondition, Filters
from toolscript.documents.model.points import ChunkQuery
from toolscript.documents.model.query import DocumentQuery, Rerank
from toolscript.documents.ports import TenantDocuments
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.documents.search import DocumentSearch
from toolscript.testing import HashEmbedder, MemoryDocuments

EVERY_KIND: list[dict[str, Any]] = [
    {"search_type": SearchType.SEMANTIC},
    {"search_type": SearchType.KEYWORD},
    {"fusion": Fusion.RRF},
    {"fusion": Fusion.ZSCORE},
    {},
]
TAX = document("tax", "Payroll and taxes in Germany.", title="Taxes", year=2020, tags=["money", "law"])
CAT = document("cat", "Cats sleep most of the day.", title="Cats", year=2021)
LONG = document("long", long_text(["harbour", "lighthouse", "tide"], 3), title="The coast", year=2022)


@pytest.fixture(params=["memory", "qdrant"])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    if request.param == "memory":
        return Corpus(MemoryDocuments(CARD))
    index: QdrantDocuments = request.getfixturevalue("qdrant_documents")
    return Corpus(index)


@pytest.mark.requirement("DOC-001", "DOC-007")
@pytest.mark.parametrize("options", EVERY_KIND)
async def test_every_kind_of_search_finds_the_best_document(corpus: Corpus, options: dict[str, Any]) -> None:
    await corpus.put(TAX, CAT, LONG)
    answer = await corpus.ask("taxes in germany", **options)
    assert answer.hits[0].id == "tax"
    assert all(0 <= hit.score <= 1 for hit in answer.hits)
    assert answer.degraded == ()


@pytest.mark.requirement("DOC-001")
async def test_a_hit_shows_its_metadata_and_a_window_of_what_matched(corpus: Corpus) -> None:
    await corpus.put(TAX, LONG)
    (hit,) = (await corpus.ask("lighthouse", search_type=SearchType.KEYWORD, metadata_fields=("title",))).hits
    assert (hit.id, hit.metadata) == ("long", {"title": "The coast"})
    assert hit.passage == 1
    assert hit.snippet is not None
    assert len(hit.snippet.text) <= 240
    assert LONG.text[hit.snippet.start : hit.snippet.end] == hit.snippet.text
    assert {hit.snippet.text[start:end] for start, end in hit.snippet.highlights} == {"lighthouse"}


async def test_no_snippets_unless_requested(corpus: Corpus) -> None:
    await corpus.put(TAX)
    assert (await corpus.ask("taxes", include_snippets=False)).hits[0].snippet is None


@pytest.mark.requirement("DOC-001", "DOC-002")
async def test_filters_alone_return_every_document_that_passes(corpus: Corpus) -> None:
    await corpus.put(TAX, CAT, LONG)
    late = Filters(must=(FieldCondition.of("year", "gte", 2021),))
    answer = await corpus.ask(filters=late)
    assert {hit.id for hit in answer.hits} == {"cat", "long"}
    assert answer.total == Total(2)
    assert {hit.score for hit in answer.hits} == {1.0}


@pytest.mark.requirement("DOC-002")
@pytest.mark.parametrize("options", EVERY_KIND)
async def test_filters_hold_for_every_kind_of_search(corpus: Corpus, options: dict[str, Any]) -> None:
    await corpus.put(TAX, CAT, LONG)
    none = Filters(must_not=(FieldCondition.of("tags", "contains", "law"),))
    assert "tax" not in await corpus.found("taxes cats harbour", filters=none, **options)


@pytest.mark.requirement("DOC-004")
@pytest.mark.parametrize("options", EVERY_KIND)
async def test_a_tenant_finds_nothing_of_another(corpus: Corpus, options: dict[str, Any]) -> None:
    await corpus.put(TAX, CAT)
    answer = await corpus.search.search(OTHER, DocumentQuery("taxes cats", **options))
    assert (answer.hits, answer.total) == ([], Total(0))


@pytest.mark.requirement("DOC-004")
@pytest.mark.parametrize("options", EVERY_KIND)
async def test_results_are_the_same_with_and_without_other_tenants(
    corpus: Corpus, options: dict[str, Any]
) -> None:
    await corpus.put(TAX, CAT, LONG)
    alone = await corpus.ask("taxes of cats at the harbour", **options)
    others = [document(f"{number}", "taxes " * 50 + "harbour", year=number) for number in range(200)]
    for name in ("b", "c"):
        await corpus.service.put(Principal(Tenant(name)), others)
    fresh = Corpus(corpus.index)
    assert (await fresh.ask("taxes of cats at the harbour", **options)).hits == alone.hits


async def test_a_document_of_many_chunks_does_not_crowd_out_the_others(corpus: Corpus) -> None:
    await corpus.put(document("huge", long_text(["winter"], 160)))
    await corpus.put(*[document(f"small-{number}", "winter and summer") for number in range(20)])
    for options in EVERY_KIND:
        assert len(await corpus.found("winter", top_k=10, **options)) == 10


async def test_the_total_is_exact_or_counted(corpus: Corpus) -> None:
    for start in range(0, 120, 40):
        await corpus.put(*[document(f"{number}", "winter") for number in range(start, start + 40)])
    assert (await corpus.ask("winter", search_type=SearchType.SEMANTIC)).total == Total(120)
    sparse = await corpus.ask("winter", search_type=SearchType.KEYWORD, top_k=5)
    assert sparse.total == Total(100, Exactness.AT_LEAST)
    assert (await corpus.ask("winter", search_type=SearchType.KEYWORD, top_k=70)).total == Total(120)


async def test_a_query_of_punctuation_finds_nothing_by_keyword(corpus: Corpus) -> None:
    await corpus.put(TAX)
    assert await corpus.found("?!", search_type=SearchType.KEYWORD) == []


def test_a_blank_query_is_refused() -> None:
    with pytest.raises(BlankQuery):
        DocumentQuery("  ")


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0},
        {"top_k": 201},
        {"offset": -1},
        {"offset": 1_001},
        {"fusion": Fusion.RRF, "search_type": SearchType.SEMANTIC},
        {"cursor": "*", "offset": 1},
        {"snippet_max_chars": 0},
        {"text": "x" * 2_001},
        {"metadata_fields": ("x",) * 101},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        DocumentQuery(**{"text": "x", **options})


@pytest.mark.requirement("DOC-007")
async def test_the_plan_is_checked_before_the_engine_is_queried(corpus: Corpus) -> None:
    small = Principal(ACME.tenant, Plan("small", max_top_k=3))
    with pytest.raises(PlanExceeded):
        await corpus.search.search(small, DocumentQuery("x", top_k=4))


class SilentEmbedder(HashEmbedder):
    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable("down")


@pytest.mark.parametrize("search_type", [SearchType.SEMANTIC, SearchType.HYBRID])
async def test_without_embeddings_sparse_retrieval_answers_and_the_response_is_degraded(
    corpus: Corpus, search_type: SearchType
) -> None:
    await corpus.put(TAX, CAT)
    degraded = Corpus(corpus.index, embedder=SilentEmbedder())
    answer = await degraded.ask("taxes", search_type=search_type)
    assert [hit.id for hit in answer.hits] == ["tax"]
    assert answer.degraded == ("embedding",)


@pytest.mark.requirement("DOC-005")
async def test_every_stage_is_a_span_within_the_search() -> None:
    spans = MemorySpans()
    corpus = Corpus(MemoryDocuments(CARD), spans=spans)
    await corpus.put(TAX)
    await corpus.ask("taxes")
    (whole,) = [span for span in spans.spans if span.within is None]
    assert whole.name == "search.execute"
    inner = [span.name for span in spans.spans if span.within is whole]
    stages = ["statistics", "embed", "retrieve", "fuse", "enrich"]
    assert inner == [f"search.{stage}" for stage in stages]
    assert all(span.ended and not span.error for span in spans.spans)
    assert "taxes" not in str([span.facts for span in spans.spans])


@pytest.mark.requirement("DOC-007")
async def test_a_reranker_decides_the_order_of_the_best() -> None:
    corpus = Corpus(MemoryDocuments(CARD))
    await corpus.put(TAX, CAT, LONG)
    search = DocumentSearch(
        corpus.embedder,
        corpus.index,
        spans=corpus.spans,
        cursor_secret=b"x",
        rerankers={Rerank.CROSS_ENCODER: OnlyCats()},
    )
    query = DocumentQuery("taxes", rerank=Rerank.CROSS_ENCODER)
    answer = await search.search(ACME, query)
    assert answer.hits[0].id == "cat"
    assert (answer.hits[0].score, answer.reranked_by) == (1.0, "only cats")


class OnlyCats:
    name = "only cats"

    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        return [float("Cats" in passage) for passage in passages]


class NeverAnswers:
    name = "never"

    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        await asyncio.Event().wait()
        return []


@pytest.mark.states("S2-085")
async def test_a_reranker_that_does_not_answer_leaves_the_order_as_it_was() -> None:
    corpus = Corpus(MemoryDocuments(CARD))
    await corpus.put(TAX, CAT, LONG)
    search = DocumentSearch(
        corpus.embedder,
        corpus.index,
        spans=corpus.spans,
        cursor_secret=b"x",
        rerankers={Rerank.LLM: NeverAnswers()},
        deadline_seconds=2.0,
    )
    answer = await search.search(ACME, DocumentQuery("taxes", rerank=Rerank.LLM))
    assert [hit.id for hit in answer.hits] == await corpus.found("taxes")
    assert (answer.degraded, answer.reranked_by) == (("rerank",), "")


async def test_a_reranker_that_is_not_set_up_is_refused(corpus: Corpus) -> None:
    with pytest.raises(InvalidRequest, match="not set up"):
        await corpus.ask("x", rerank=Rerank.LLM)


class Hanging:
    """Documents of a tenant in an engine that does not respond."""

    def __init__(self, documents: TenantDocuments) -> None:
        self._documents = documents

    def __getattr__(self, name: str) -> object:
        return getattr(self._documents, name)

    async def search(self, ask: ChunkQuery) -> FoundChunks:
        return await asyncio.Future()


class HangingIndex(MemoryDocuments):
    def of(self, tenant: Tenant) -> TenantDocuments:  # type: ignore[override]
        return Hanging(super().of(tenant))  # type: ignore[return-value]


async def test_one_deadline_holds_for_the_whole_search() -> None:
    corpus = Corpus(HangingIndex(CARD))
    search = DocumentSearch(
        corpus.embedder, corpus.index, spans=corpus.spans, cursor_secret=b"x", deadline_seconds=0.05
    )
    with pytest.raises(IndexUnavailable, match="no answer in time"):
        await search.search(ACME, DocumentQuery("taxes"))
