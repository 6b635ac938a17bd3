"""Whether any document fits a query, with the built-in model: among many, alone, in pages and by tenant."""

from collections.abc import Sequence

import pytest

from tests.support.hive_notes import ANSWERED, ESPRESSO, UNANSWERED, hive_notes
from tests.unit.documents.search.builders import ACME, OTHER, Corpus, document
from toolscript.core.auth.model import Principal
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.query import SearchType
from toolscript.documents.model.document import Document
from toolscript.documents.model.filters import FieldCondition, Filters, Op
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.model.query import FIRST_PAGE
from toolscript.testing import MemoryDocuments

pytestmark = pytest.mark.requirement("VE-001", "DOC-001")

NOTES = [document(str(number), text, title=title) for number, (title, text) in enumerate(hive_notes())]
COFFEE = document("coffee", "To reset the espresso machine, hold both buttons until the lamp goes out.")


async def corpus_of(*documents: Document, principal: Principal = ACME) -> Corpus:
    embedder = StaticEmbedder()
    index = MemoryDocuments(DocumentCard(embedder.model))
    corpus = Corpus(index, embedder, principal, scale=await measure_scale(embedder))
    await put(corpus, documents)
    return corpus


async def put(corpus: Corpus, documents: Sequence[Document]) -> None:
    for start in range(0, len(documents), 100):
        await corpus.put(*documents[start : start + 100])


@pytest.fixture(scope="module")
async def hives() -> Corpus:
    return await corpus_of(*NOTES)


@pytest.mark.parametrize("text", UNANSWERED)
async def test_what_no_document_is_about_is_no_good_match(hives: Corpus, text: str) -> None:
    answer = await hives.ask(text)
    assert (len(answer.hits), answer.good_match) == (10, False)


@pytest.mark.parametrize("text", ANSWERED)
async def test_what_a_document_is_about_is_a_good_match(hives: Corpus, text: str) -> None:
    assert (await hives.ask(text)).good_match is True


async def test_one_document_alone_fits_its_own_subject_and_no_other() -> None:
    alone = await corpus_of(COFFEE)
    assert (await alone.ask(ESPRESSO)).good_match is True
    assert [(await alone.ask(text)).good_match for text in (*ANSWERED, "asdf qwer")] == [False] * 6


async def test_a_long_document_alone_does_not_fit_everything() -> None:
    book = document("book", "\n\n".join(f"# {title}\n\n{text} " * 6 for title, text in hive_notes()))
    alone = await corpus_of(book)
    assert [(await alone.ask(text)).good_match for text in UNANSWERED] == [False] * len(UNANSWERED)
    assert (await alone.ask(ANSWERED[0])).good_match is True


async def test_every_page_has_the_verdict_of_the_first(hives: Corpus) -> None:
    for text, verdict in ((ANSWERED[0], True), (ESPRESSO, False)):
        verdicts, cursor = [], FIRST_PAGE
        while cursor:
            page = await hives.ask(text, top_k=60, cursor=cursor)
            verdicts.append(page.good_match)
            cursor = page.next_cursor
        assert verdicts == [verdict] * 5
        assert (await hives.ask(text, offset=60)).good_match is verdict


async def test_it_is_never_a_good_match_without_results(hives: Corpus) -> None:
    answer = await hives.ask(ANSWERED[0], offset=1000)
    assert (answer.hits, answer.good_match) == ([], False)
    assert (await (await corpus_of()).ask(ESPRESSO)).good_match is False


async def test_there_is_no_verdict_on_a_list_or_by_a_single_retriever(hives: Corpus) -> None:
    assert (await hives.ask(cursor=FIRST_PAGE)).good_match is None
    assert (await hives.ask(ESPRESSO, search_type=SearchType.SEMANTIC)).good_match is None
    assert (await hives.ask("swarming", search_type=SearchType.KEYWORD)).good_match is None


async def test_there_is_no_verdict_without_embeddings_or_the_scale_of_the_model() -> None:
    class Down(StaticEmbedder):
        async def embed_query(self, text: str) -> Vector:
            raise EmbedderUnavailable("down")

    corpus = await corpus_of(COFFEE)
    down = Corpus(corpus.index, Down(), scale=corpus.scale)
    answer = await down.ask(ESPRESSO)
    assert (len(answer.hits), answer.degraded, answer.good_match) == (1, ("embedding",), None)
    assert (await Corpus(corpus.index, StaticEmbedder()).ask(ESPRESSO)).good_match is None


async def test_the_verdict_is_about_the_documents_that_pass_the_filters() -> None:
    corpus = await corpus_of(*NOTES, document("coffee", COFFEE.text, kind="kitchen"))
    hives_only = Filters(must_not=(FieldCondition.of("kind", Op.EQ, "kitchen"),))
    assert (await corpus.ask(ESPRESSO)).good_match is True
    assert (await corpus.ask(ESPRESSO, filters=hives_only)).good_match is False


async def test_documents_of_other_tenants_do_not_change_the_verdict(hives: Corpus) -> None:
    other = Corpus(hives.index, StaticEmbedder(), OTHER, scale=hives.scale)
    await other.put(COFFEE)
    assert (await other.ask(ESPRESSO)).good_match is True
    assert (await hives.ask(ESPRESSO)).good_match is False
    assert [(await other.ask(text)).good_match for text in ANSWERED] == [False] * len(ANSWERED)
