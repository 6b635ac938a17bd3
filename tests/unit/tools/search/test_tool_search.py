"""Tool search on doubles, from a query to an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.unit.tools.search.builders import ITEMS, SCHEMA, Scene, WatchedCatalog, WatchedIndex
from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.errors import IndexUnavailable
from toolscript.core.items import ItemKind, Schemas
from toolscript.core.retrieval.fusion import CANDIDATES_PER_RETRIEVER
from toolscript.core.retrieval.model import Fields, IndexCard
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.verdict import PROBED_LANGUAGES, CosineScale
from toolscript.core.retrieval.weights import SHOWN, Calibration, RankingWeights
from toolscript.testing import HashEmbedder
from toolscript.tools import search
from toolscript.tools.model.answer import LOWER_THRESHOLD, OTHER_WORDS
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import NEAR_MISSES

TWO_SUB_QUERIES = "read the contents of a file and send a letter to somebody"
ALL_ACTIVE = {item.name for item in ITEMS} - {"read_file_old"}


def query(text: str = "read a file", **more: object) -> ToolQuery:
    default = {"threshold": 0.0, "limit": 100, "strategy": Strategy.DIRECT}
    return ToolQuery(text, **default | more)  # type: ignore[arg-type]


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.SEMANTIC])
async def test_a_query_is_embedded_exactly_once(search_type: SearchType) -> None:
    scene = Scene()
    await scene.search(query(search_type=search_type))
    assert scene.embedder.queries_embedded == 1


@pytest.mark.requirement("BR-001")
async def test_each_sub_query_is_embedded_exactly_once() -> None:
    scene = Scene()
    await scene.search(query(TWO_SUB_QUERIES))
    assert scene.embedder.queries_embedded == len(parse_query(TWO_SUB_QUERIES).texts) == 3
    semantic = Scene()
    await semantic.search(query(TWO_SUB_QUERIES, search_type=SearchType.SEMANTIC))
    assert semantic.embedder.queries_embedded == 1


async def test_the_retrievers_get_the_whole_query_and_each_sub_query() -> None:
    scene = Scene()
    answer = await scene.search(query(TWO_SUB_QUERIES))
    assert isinstance(scene.index, WatchedIndex)
    assert [ask.terms for ask in scene.index.asks] == [part.terms for part in parse_query(TWO_SUB_QUERIES).parts]
    assert {hit.name for hit in (*answer.hits, *answer.near_misses)[:2]} == {"read_file", "send_mail"}
    keyword = Scene()
    await keyword.search(query(TWO_SUB_QUERIES, search_type=SearchType.KEYWORD))
    assert isinstance(keyword.index, WatchedIndex)
    assert len(keyword.index.asks) == 1


async def test_payloads_of_candidates_are_read_once_and_not_again_for_hits() -> None:
    scene = Scene()
    await scene.search(query(limit=1))
    assert isinstance(scene.index, WatchedIndex)
    assert scene.index.looks == [(len(ALL_ACTIVE), ())]


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize(("action", "best"), [(0.0, "read_file"), (10.0, "write_file")])
async def test_a_search_ranks_by_its_weights(action: float, best: str) -> None:
    """`read_file` has the more similar words; 'store' is the action of `write_file`."""
    weights = RankingWeights(0.5, 0.0, coverage=0.0, word_match=0.0, name=0.0, action=action, subject=0.0)
    answer = await Scene(weights=weights).search(query("store the contents of a file"))
    assert answer.hits[0].name == best


async def test_a_keyword_search_embeds_nothing() -> None:
    scene = Scene()
    answer = await scene.search(query(search_type=SearchType.KEYWORD))
    assert scene.embedder.queries_embedded == 0
    assert answer.search_type_used == "keyword"
    assert answer.degraded == ()


@pytest.mark.requirement("BR-001")
async def test_the_best_comes_first() -> None:
    answer = await Scene().search(query())
    assert answer.hits[0].name == "read_file"
    order = [(-hit.score, hit.id) for hit in answer.hits]
    assert order == sorted(order)


@pytest.mark.parametrize("search_type", list(SearchType))
async def test_an_answer_names_the_retrievers_that_ran(search_type: SearchType) -> None:
    scene = Scene()
    answer = await scene.search(query(search_type=search_type))
    assert answer.search_type_used == search_type.value
    assert isinstance(scene.index, WatchedIndex)
    ask = scene.index.asks[0]
    assert (ask.vector is not None) == (search_type is not SearchType.KEYWORD)
    assert (ask.terms is not None) == (search_type is not SearchType.SEMANTIC)
    assert ask.limit == CANDIDATES_PER_RETRIEVER


@pytest.mark.requirement("BR-003")
async def test_inactive_items_are_never_found() -> None:
    answer = await Scene().search(query("read_file_old"))
    assert {hit.name for hit in answer.hits} <= ALL_ACTIVE


@pytest.mark.requirement("BR-003", "BR-009")
async def test_only_items_that_reach_the_threshold_are_returned_and_counted() -> None:
    everything = await Scene().search(query("file"))
    threshold = everything.hits[1].score
    answer = await Scene().search(query("file", threshold=threshold))
    assert answer.hits == everything.hits[:2]
    assert answer.candidate_count == 2
    assert (await Scene().search(query("unheard-of gibberish", threshold=0.99))).hits == ()


@pytest.mark.requirement("BR-003")
async def test_when_no_item_reaches_the_threshold_the_near_misses_are_returned() -> None:
    everything = await Scene().search(query("file"))
    answer = await Scene().search(query("file", threshold=1.0))
    assert (answer.hits, answer.candidate_count) == ((), 0)
    nearest = [replace(hit, schemas=Schemas(), confidence=None) for hit in everything.hits[:NEAR_MISSES]]
    assert [replace(miss, confidence=None) for miss in answer.near_misses] == nearest
    assert everything.near_misses == ()


@pytest.mark.requirement("BR-003", "TS-003")
async def test_what_fits_and_does_not_reach_the_threshold_has_the_confidence_of_a_guess() -> None:
    text = "read the contents of a file, then send an electronic letter"
    fits = await Scene().search(query(text))
    assert fits.good_match
    assert (fits.hits[0].confidence or 0) > SHOWN
    answer = await Scene().search(query(text, threshold=1.0))
    assert (answer.good_match, answer.hits) == (False, ())
    misses = [*answer.near_misses, *(miss for step in answer.steps for miss in step.near_misses)]
    assert len(answer.steps) == 2
    assert all(0 < (miss.confidence or 0) < SHOWN for miss in misses)


@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("text", ["read a file", "send mail", "zzz qqq", "file"])
async def test_scores_are_between_zero_and_one(text: str) -> None:
    answer = await Scene().search(query(text))
    assert all(0.0 <= hit.score <= 1.0 for hit in answer.hits)


@pytest.mark.requirement("BR-003", "BR-007")
async def test_the_limit_applies_to_returned_items_and_not_to_the_count() -> None:
    everything = await Scene().search(query("file"))
    answer = await Scene().search(query("file", limit=1))
    assert answer.hits == everything.hits[:1]
    assert answer.candidate_count == everything.candidate_count > 1


@pytest.mark.requirement("BR-005")
@pytest.mark.parametrize("kind", list(ItemKind))
async def test_a_kind_finds_only_that_kind(kind: ItemKind) -> None:
    answer = await Scene().search(query("file", kind=kind, search_type=SearchType.SEMANTIC))
    expected = {item.name for item in ITEMS if item.kind is kind} & ALL_ACTIVE
    assert {hit.name for hit in answer.hits} <= expected
    assert {hit.kind for hit in answer.hits} == {kind}


@pytest.mark.requirement("BR-003")
async def test_named_skills_find_items_that_have_any_of_them() -> None:
    answer = await Scene().search(query("file letter", skill_ids=("reading", "mail")))
    assert {hit.name for hit in answer.hits} == {"read_file", "send_mail"}
    by_name = {hit.name: hit for hit in answer.hits}
    assert by_name["read_file"].skill_ids == ("files", "reading")
    assert by_name["read_file"].primary_skill_id == "files"


@pytest.mark.states("S0-019", "S0-055", "S0-056")
@pytest.mark.requirement("BR-004")
async def test_schemas_are_read_once_and_only_for_returned_items() -> None:
    scene = Scene()
    answer = await scene.search(query(limit=2))
    assert isinstance(scene.catalog, WatchedCatalog)
    assert scene.catalog.schema_reads == [[hit.id for hit in answer.hits]]
    assert answer.hits[0].schemas == Schemas(input_schema=SCHEMA)


async def test_schemas_are_read_again_only_when_the_point_of_the_item_has_changed() -> None:
    scene = Scene()
    await scene.fill()
    tools = scene.tools
    first = await tools.search(query(limit=2))
    again = await tools.search(query(limit=2))
    assert isinstance(scene.catalog, WatchedCatalog)
    assert [hit.schemas for hit in again.hits] == [hit.schemas for hit in first.hits]
    assert len(scene.catalog.schema_reads) == 1
    more = await tools.search(query(limit=3))
    assert scene.catalog.schema_reads[1:] == [[hit.id for hit in more.hits[2:]]]
    await scene.fill()
    await tools.search(query(limit=2))
    assert scene.catalog.schema_reads[2:] == [[hit.id for hit in first.hits]]


@pytest.mark.requirement("BR-004")
async def test_the_cache_of_schemas_has_a_fifth_of_the_entries_of_that_of_payloads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "CACHE_SIZE", 5)
    scene = Scene()
    await scene.fill()
    tools = scene.tools
    for _ in range(2):
        answer = await tools.search(query(limit=2))
    assert isinstance(scene.catalog, WatchedCatalog)
    returned = [hit.id for hit in answer.hits]
    assert scene.catalog.schema_reads == [returned, returned[:1]]


@pytest.mark.requirement("BR-004")
async def test_an_item_without_schemas_has_none() -> None:
    answer = await Scene().search(query("summary", kind=ItemKind.PROMPT))
    assert answer.hits[0].schemas == Schemas()


@pytest.mark.parametrize("tool_query", [query(include_schemas=False), query(skill_ids=("nobody_has_it",))])
async def test_schemas_that_are_not_returned_are_not_read(tool_query: ToolQuery) -> None:
    scene = Scene()
    answer = await scene.search(tool_query)
    assert isinstance(scene.catalog, WatchedCatalog)
    assert scene.catalog.schema_reads == []
    assert answer.timings.total > 0


@pytest.mark.requirement("BR-007", "BR-008")
async def test_an_answer_has_its_query_its_index_and_the_timings_of_its_stages() -> None:
    scene = Scene()
    answer = await scene.search(query("read"))
    assert (answer.query, answer.index) == ("read", IndexCard(scene.embedder.model).fingerprint)
    spent = answer.timings
    assert spent.skill_search == 0.0
    assert min(spent.query_embedding, spent.tool_search, spent.schema_load) > 0
    assert 0 < spent.ranking < spent.tool_search
    assert spent.total >= spent.query_embedding + spent.tool_search + spent.schema_load


def verdict(good_match: float) -> RankingWeights:
    return RankingWeights(calibration=Calibration(good_match_threshold=good_match))


@pytest.mark.parametrize("threshold", [0.0, 1.0])
async def test_an_answer_has_a_verdict_on_its_best_item(threshold: float) -> None:
    never, always = 1.0, 0.0
    for minimum, expected in ((always, True), (never, False)):
        answer = await Scene(weights=verdict(minimum)).search(query(threshold=threshold))
        assert answer.good_match is (expected and bool(answer.hits))


async def test_confidence_never_rises_down_the_list() -> None:
    confidences = [hit.confidence or 0.0 for hit in (await Scene().search(query("file"))).hits]
    assert len(confidences) > 1
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 < confidence < 1 for confidence in confidences)


async def test_an_answer_has_the_words_that_no_candidate_has() -> None:
    assert (await Scene().search(query("read a striped file"))).unmatched == ("striped",)
    assert (await Scene().search(query("read a file"))).unmatched == ()


async def test_vectors_alone_give_no_verdict() -> None:
    answer = await Scene().search(query("read a striped file", search_type=SearchType.SEMANTIC))
    assert (answer.good_match, answer.fit, answer.unmatched) == (None, None, ())
    assert {hit.confidence for hit in answer.hits} == {None}


@pytest.mark.requirement("VE-001")
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize(
    ("text", "fits", "unmatched"),
    [
        ("read a striped file", True, ("striped",)),
        ("a striped zebra in the garden file", False, ("striped", "zebra", "garden")),
        ("xylophone lessons", False, ("xylophone", "lessons")),
    ],
)
async def test_keyword_search_has_the_verdict_of_its_words(
    text: str, fits: bool, unmatched: tuple[str, ...], strategy: Strategy
) -> None:
    asked = query(text, search_type=SearchType.KEYWORD, threshold=0.0, strategy=strategy, skill_threshold=0.0)
    answer = await Scene().search(asked)
    assert (answer.good_match, answer.unmatched) == (fits, unmatched)
    assert {hit.confidence for hit in answer.hits} <= {None}


@pytest.mark.parametrize(
    ("text", "threshold", "hint"),
    [
        ("read a file", 0.0, None),
        ("read a file", 1.0, LOWER_THRESHOLD),
        ("xylophone file lessons for marsupials", 0.0, OTHER_WORDS),
        ("xylophone file lessons for marsupials", 1.0, OTHER_WORDS),
    ],
)
async def test_the_hint_says_what_to_do_where_nothing_fits_or_is_below_the_threshold(
    text: str, threshold: float, hint: str | None
) -> None:
    asked = query(text, search_type=SearchType.KEYWORD, threshold=threshold)
    assert (await Scene().search(asked)).hint == hint


async def test_a_keyword_search_whose_payloads_cannot_be_read_is_an_error() -> None:
    class Unreadable(WatchedIndex):
        async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
            raise IndexUnavailable("no payload can be read")

    with pytest.raises(IndexUnavailable):
        await Scene(index=Unreadable()).search(query("read a file", search_type=SearchType.KEYWORD))


@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize("text", ["???", "'; DROP TABLE items; --", "<script>alert(1)</script>", "\0", "日本語"])
async def test_a_query_of_symbols_is_answered_like_any_other(text: str) -> None:
    answer = await Scene().search(query(text))
    assert answer.degraded == ()
    assert answer.search_type_used == "hybrid"


async def test_each_step_of_a_request_has_its_own_hits() -> None:
    scene = Scene()
    answer = await scene.search(query(TWO_SUB_QUERIES, limit=1))
    assert [(step.query, [hit.name for hit in step.hits]) for step in answer.steps] == [
        ("read the contents of a file", ["read_file"]),
        ("send a letter to somebody", ["send_mail"]),
    ]
    assert len(answer.hits) == 1
    assert [hit.name for hit in answer.all_hits] == ["read_file", "send_mail"]
    assert answer.all_hits[0].schemas == Schemas(SCHEMA)
    assert isinstance(scene.catalog, WatchedCatalog)
    assert len(scene.catalog.schema_reads) == 1
    assert (await Scene().search(query("read the contents of a file"))).steps == ()


@pytest.mark.parametrize("strategy", Strategy)
async def test_steps_are_ranked_with_every_strategy(strategy: Strategy) -> None:
    answer = await Scene().search(query(TWO_SUB_QUERIES, strategy=strategy, skill_threshold=0.0))
    assert [step.hits[0].name for step in answer.steps] == ["read_file", "send_mail"]


async def test_a_step_returns_nothing_below_the_threshold() -> None:
    answer = await Scene().search(query(TWO_SUB_QUERIES, threshold=1.0))
    assert [(step.hits, step.good_match) for step in answer.steps] == [((), False)] * 2


async def test_a_single_retriever_takes_a_request_as_one() -> None:
    for search_type in (SearchType.SEMANTIC, SearchType.KEYWORD):
        assert (await Scene().search(query(TWO_SUB_QUERIES, search_type=search_type))).steps == ()


# With these scales anything that is retrieved is near.
ENGLISH_ONLY = CosineScale(-1.0, 0.05, languages=())
MULTILINGUAL = replace(ENGLISH_ONLY, languages=PROBED_LANGUAGES)


@pytest.mark.parametrize("text", ["Bitte lies mir den Inhalt der Datei vor", "把这个文件的内容读给我听"])
async def test_a_query_in_a_language_that_the_model_does_not_know_is_no_good_match_and_has_a_hint(
    text: str,
) -> None:
    answer = await Scene(scale=ENGLISH_ONLY).search(query(text))
    assert answer.good_match is False
    assert answer.hint is not None
    assert "knows English only" in answer.hint
    assert "TOOLSCRIPT_EMBEDDING_MODEL=multilingual" in answer.hint
    assert answer.hits
    known = await Scene(scale=MULTILINGUAL).search(query(text))
    assert (known.good_match, known.hint) == (True, None)


async def test_an_english_query_has_no_hint() -> None:
    answer = await Scene(scale=ENGLISH_ONLY).search(query())
    assert (answer.good_match, answer.hint) == (True, None)


async def test_a_query_of_another_set_of_namespaces_is_embedded_anew() -> None:
    """Else the clock would tell a namespace what another one has just been asked."""
    inner, plain = HashEmbedder(), Scene()
    await plain.fill()
    tools = replace(plain, embedder=CachedEmbedder(inner, 10)).tools  # type: ignore[arg-type]
    for namespaces in (("default",), ("red",), ("red", "blue"), ("blue", "red"), ("red",), ("default",)):
        await tools.search(query(namespaces=namespaces))
    assert inner.queries_embedded == 3
