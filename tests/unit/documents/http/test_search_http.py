"""POST /search: requests, responses and access."""

import uuid

import pytest

from tests.unit.documents.http.builders import ACME, Client, Json, Parts, app_of, client_of, document
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.documents.model.filters import FieldCondition, Filters, Op
from toolscript.documents.model.query import Rerank

pytestmark = pytest.mark.requirement("DOC-001")

LIBRARY = [
    document(1, "Whales are mammals that live in the sea.", title="Whales", year=2019, tags=["sea", "animals"]),
    document(2, "Tax law of the sea: who pays for a harbour.", title="Harbours", year=2021, tags=["law"]),
    document(3, "How to bake bread with little yeast.", title="Bread", year=2024),
]


@pytest.mark.requirement("DOC-006")
async def test_a_stored_document_is_found_with_all_fields_of_a_response(every_api: Client) -> None:
    await every_api.put(*LIBRARY)
    answer = await every_api.search("whales in the sea", top_k=2, metadata_fields=["title", "path"])
    assert answer.keys() == {
        *("query_id", "took_ms", "total", "total_is", "hits", "next_cursor"),
        *("search_type", "fusion", "degraded", "reranked_by"),
    }
    assert (answer["search_type"], answer["fusion"]) == ("hybrid", "best")
    assert (answer["degraded"], answer["reranked_by"], answer["next_cursor"]) == ([], None, None)
    assert uuid.UUID(answer["query_id"]).version == 4
    best = answer["hits"][0]
    assert (best["doc_id"], best["metadata"]) == ("doc-1", {"title": "Whales"})
    assert len(answer["hits"]) <= 2 <= answer["total"]


async def test_a_snippet_is_text_with_its_offsets_and_highlights(every_api: Client) -> None:
    text = "Nothing of interest here. " * 20 + "A lighthouse stands on the rock. " + "And nothing again. " * 20
    await every_api.put(document(1, text))
    hit = (await every_api.search("lighthouse", snippet_max_chars=80))["hits"][0]
    assert len(hit["snippet"]) <= 80
    assert text[hit["snippet_start"] : hit["snippet_end"]] == hit["snippet"]
    assert "lighthouse" in [hit["snippet"][start:end] for start, end in hit["highlights"]]
    bare = (await every_api.search("lighthouse", include_snippets=False))["hits"][0]
    assert (bare["snippet"], bare["snippet_start"], bare["snippet_end"], bare["highlights"]) == (
        None,
        None,
        None,
        [],
    )


async def test_every_field_of_a_request_reaches_the_search(api: Client, parts: Parts) -> None:
    body: Json = {
        "query": "harbour",
        "top_k": 7,
        "offset": 3,
        "search_type": "hybrid",
        "fusion": "rrf",
        "filters": {
            "must": [{"field": "tags", "op": "in", "value": ["law", "sea"]}],
            "should": [{"field": "year", "op": "gte", "value": 2020}],
            "must_not": [{"field": "draft", "op": "exists"}],
        },
        "include_snippets": False,
        "snippet_max_chars": 99,
        "metadata_fields": ["title"],
        "rerank": "off",
    }
    await api.search(**body)
    query = parts.searched[0]["query"]
    assert (query.text, query.top_k, query.offset) == ("harbour", 7, 3)
    assert (query.search_type, query.fusion, query.rerank) == (SearchType.HYBRID, Fusion.RRF, Rerank.OFF)
    assert (query.include_snippets, query.snippet_max_chars, query.metadata_fields) == (False, 99, ("title",))
    assert query.filters == Filters(
        (FieldCondition("tags", Op.IN, ("law", "sea")),),
        (FieldCondition("year", Op.GTE, (2020.0,)),),
        (FieldCondition("draft", Op.EXISTS, (True,)),),
    )


@pytest.mark.requirement("DOC-005")
async def test_every_search_is_reported_with_the_query_id_of_its_response(api: Client, parts: Parts) -> None:
    answer = await api.search("bread")
    entry = parts.searched[0]
    assert (entry["caller"], entry["query_id"], entry["took_ms"]) == (ACME, answer["query_id"], answer["took_ms"])
    assert answer["took_ms"] > 0


@pytest.mark.requirement("DOC-007")
async def test_pages_follow_each_other_by_cursor_and_the_last_has_none(every_api: Client) -> None:
    await every_api.put(*(document(number, "the same words") for number in range(7)))
    searches: list[Json] = [
        {"query": "same words"},
        {"filters": {"must_not": [{"field": "x", "op": "exists"}]}},
        {},
    ]
    for body in searches:
        ids, cursor = list[str](), "*"
        while cursor:
            page = await every_api.search(**{**body, "cursor": cursor, "top_k": 3})
            ids += [hit["doc_id"] for hit in page["hits"]]
            cursor = page["next_cursor"]
        assert sorted(ids) == [f"doc-{number}" for number in range(7)]


async def test_without_a_query_only_filters_apply_and_there_is_no_fusion(every_api: Client) -> None:
    await every_api.put(*LIBRARY)
    answer = await every_api.search(filters={"must": [{"field": "year", "op": "gt", "value": 2020}]})
    assert sorted(hit["doc_id"] for hit in answer["hits"]) == ["doc-2", "doc-3"]
    assert (answer["total"], answer["total_is"], answer["fusion"]) == (2, "exact", None)


@pytest.mark.requirement("DOC-004")
async def test_no_search_finds_documents_of_another_tenant(every_api: Client, every_parts: Parts) -> None:
    await every_api.put(*LIBRARY)
    async with client_of(app_of(every_parts.routes()), "token-of-other") as other:
        assert (await other.search("whales in the sea"))["hits"] == []
        assert (await other.search(cursor="*"))["total"] == 0


INVALID: list[tuple[object, int]] = [
    ({}, 400),
    ({"query": " \n"}, 400),
    ({"query": None, "filters": {"must": []}}, 400),
    ({"query": 7}, 422),
    ({"query": "x" * 2001}, 422),
    ({"query": "x", "misspelt": 1}, 422),
    ({"query": "x", "top_k": 0}, 422),
    ({"query": "x", "top_k": 201}, 422),
    ({"query": "x", "top_k": "5"}, 422),
    ({"query": "x", "top_k": True}, 422),
    ({"query": "x", "top_k": 1.5}, 422),
    ({"query": "x", "offset": -1}, 422),
    ({"query": "x", "offset": 1001}, 422),
    ({"query": "x", "offset": 1, "cursor": "*"}, 422),
    ({"query": "x", "cursor": "made up"}, 422),
    ({"query": "x", "search_type": "psychic"}, 422),
    ({"query": "x", "fusion": "borda"}, 422),
    ({"query": "x", "fusion": "rrf", "search_type": "semantic"}, 422),
    ({"query": "x", "include_snippets": "yes"}, 422),
    ({"query": "x", "include_snippets": 1}, 422),
    ({"query": "x", "snippet_max_chars": 0}, 422),
    ({"query": "x", "metadata_fields": "title"}, 422),
    ({"query": "x", "metadata_fields": [1]}, 422),
    ({"query": "x", "metadata_fields": ["x"] * 101}, 422),
    ({"query": "x", "rerank": "yes"}, 422),
    ({"query": "x", "filters": []}, 422),
    ({"query": "x", "filters": {"all": []}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "a", "op": "like", "value": 1}]}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "", "op": "eq", "value": 1}]}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "a", "op": "in", "value": 1}]}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "a", "op": "lt", "value": "soon"}]}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "a", "op": "eq", "value": {}}]}}, 422),
    ({"query": "x", "filters": {"must": [{"field": "a", "op": "eq", "value": 1, "boost": 2}]}}, 422),
    ([], 422),
]


async def test_an_invalid_request_gets_the_common_error_format(
    api: Client, parts: Parts, subtests: pytest.Subtests
) -> None:
    for body, status in INVALID:
        with subtests.test(body=body, status=status):
            error = (await api.ask("POST", "/search", status, body)).json()["error"]
            assert error.keys() == {"code", "message", "details"}
            assert error["code"] == "VALIDATION_ERROR"
            assert parts.searched == []


async def test_5_0_is_a_whole_number_in_json(api: Client, parts: Parts) -> None:
    await api.search("x", top_k=5.0)
    assert parts.searched[0]["query"].top_k == 5


async def test_a_request_has_room_for_a_cursor_and_not_for_everything(api: Client) -> None:
    error = await api.search("x", 422, cursor="A" * 60_000)
    assert "the cursor" in error["error"]["message"]
    assert (await api.search("x" * 200_000, 413))["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("DOC-007")
async def test_a_request_beyond_the_plan_gets_403_and_is_reported(parts: Parts) -> None:
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        answer = await limited.ask("POST", "/search", 403, {"query": "x", "top_k": 6})
        assert answer.json()["error"]["code"] == "FORBIDDEN"
        assert [type(error).__name__ for error in parts.failed] == ["PlanExceeded"]
        answer = await limited.ask("POST", "/search", 200, {"query": "x", "top_k": 5})
    assert answer.headers["ratelimit-remaining"] == "1"
    assert answer.headers["content-length"] == str(len(answer.content))
