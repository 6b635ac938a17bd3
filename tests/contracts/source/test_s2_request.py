"""S2, `POST /search`: fields of a request, and their effects."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contracts.source.s2_service import COAST, LIBRARY, Json, Running, running
from toolscript.core.settings.service import Settings

EVERY_KIND: list[Json] = [
    {"search_type": "semantic"},
    {"search_type": "keyword"},
    {"search_type": "hybrid", "fusion": "rrf"},
    {"search_type": "hybrid", "fusion": "zscore"},
    {"search_type": "hybrid", "fusion": None},
]
NUMBERED = 12


@pytest.fixture(scope="module")
def service(
    engines: Settings, migrated_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with running(engines, migrated_database, tmp_path_factory.mktemp("s2")) as service:
        service.put(*LIBRARY)
        numbered = [{"id": f"n{number:02}", "text": "harbour " * (number + 1)} for number in range(NUMBERED)]
        service.put(*numbered, tenant="many")
        yield service


@pytest.mark.states("S2-005", "S2-007", "S2-012", "S2-018", "S2-035")
@pytest.mark.states("S2-036", "S2-040", "S2-042", "S2-043", "S2-044", "S2-097")
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_request_of_the_document_is_accepted_unchanged(service: Running, kind: Json) -> None:
    answer = service.search(
        {
            "query": "who pays for the harbour",
            "top_k": 10,
            "offset": 0,
            **kind,
            "filters": {
                "must": [{"field": "tags", "op": "in", "value": ["contract", "ruling"]}],
                "should": [],
                "must_not": [],
            },
            "include_snippets": True,
            "snippet_max_chars": 240,
            "metadata_fields": ["title", "path", "tags"],
        }
    )
    assert {hit["doc_id"]: hit["metadata"] for hit in answer["hits"]} == {
        "verdict": {"title": "Verdict", "path": "law/verdict.md", "tags": ["ruling", "tax"]},
        "lease": {"title": "Lease", "path": "law/lease.md", "tags": ["contract"]},
    }
    assert answer["total"] == 2


@pytest.mark.states("S2-013")
def test_without_a_text_the_filters_choose(service: Running) -> None:
    late = {"must": [{"field": "year", "op": "gte", "value": 2023}]}
    for nothing in ({}, {"query": None}, {"query": ""}):
        answer = service.search({**nothing, "filters": late})
        assert (sorted(hit["doc_id"] for hit in answer["hits"]), answer["total"]) == (["bread", "coast"], 2)


@pytest.mark.states("S2-020", "S2-021")
def test_a_query_is_embedded_for_vectors_and_for_nothing_else(service: Running) -> None:
    late: Json = {"filters": {"must": [{"field": "year", "op": "gte", "value": 2023}]}}
    embedded = []
    for requests in ({"query": "tax", "search_type": "keyword"}, late, {"query": "tax", "search_type": "hybrid"}):
        before = len(service.endpoint.asked)
        service.search(requests)
        embedded.append(service.endpoint.asked[before:])
    assert embedded == [[], [], [["tax"]]]


@pytest.mark.states("S2-014", "S2-037", "S2-038", "S2-051")
def test_the_default_is_the_first_ten_hits_and_top_k_and_offset_change_it(service: Running) -> None:
    request = {"query": "harbour", "search_type": "keyword"}
    default = service.search(request, "many")
    everything = service.found({**request, "top_k": NUMBERED}, "many")
    assert (len(default["hits"]), default["total"], len(everything)) == (10, NUMBERED, NUMBERED)
    assert [hit["doc_id"] for hit in default["hits"]] == everything[:10]
    assert service.found({**request, "top_k": 10, "offset": 0}, "many") == everything[:10]
    assert service.found({**request, "top_k": 3, "offset": 4}, "many") == everything[4:7]


@pytest.mark.states("S2-015", "S2-039")
def test_there_are_three_search_types_and_hybrid_is_the_usual_one(service: Running) -> None:
    output = [service.search({"query": "tax", **kind})["search_type"] for kind in EVERY_KIND]
    assert output == ["semantic", "keyword", "hybrid", "hybrid", "hybrid"]
    for unnamed in ({}, {"search_type": None}):
        answer = service.search({"query": "tax", **unnamed})
        assert (answer["search_type"], answer["fusion"]) == ("hybrid", "best")
    assert service.search({"query": "tax", "search_type": "vector"}, status=422)["error"]["code"]


@pytest.mark.states("S2-016", "S2-040", "S2-041")
def test_fusion_is_for_hybrid_and_may_be_null(service: Running) -> None:
    for name in ("rrf", "zscore", "best"):
        assert service.search({"query": "tax", "fusion": name})["fusion"] == name
    assert service.search({"query": "tax", "search_type": "hybrid", "fusion": None})["fusion"] == "best"
    for requests in ({"search_type": "semantic", "fusion": "rrf"}, {"search_type": "keyword", "fusion": "zscore"}):
        error = service.search({"query": "tax", **requests}, status=422)["error"]
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "fusion")
    assert service.search({"query": "tax", "fusion": "borda"}, status=422)["error"]["code"] == "VALIDATION_ERROR"


HARBOUR = {"field": "title", "op": "in", "value": ["Lease", "Verdict"]}
EARLY = {"field": "year", "op": "lt", "value": 2022}
LATE = {"field": "year", "op": "gt", "value": 2022}
FILTERS: list[tuple[Json, list[str]]] = [
    ({"must": [HARBOUR]}, ["lease", "verdict"]),
    ({"must": [HARBOUR, EARLY]}, ["lease"]),
    ({"must_not": [HARBOUR]}, ["bread", "coast"]),
    ({"must_not": [EARLY, LATE]}, ["verdict"]),
    ({"should": [EARLY, LATE]}, ["bread", "coast", "lease"]),
    ({"must": [HARBOUR], "should": [EARLY], "must_not": [LATE]}, ["lease"]),
    ({"must": [{"field": "nobody", "op": "eq", "value": 1}]}, []),
    ({"must": [], "should": [], "must_not": []}, ["bread", "coast", "lease", "verdict"]),
]


@pytest.mark.states("S2-017", "S2-042", "S2-080", "S2-095")
@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_all_of_must_one_of_should_and_none_of_must_not_hold(
    service: Running, filters: Json, expected: list[str]
) -> None:
    answer = service.search({"query": "harbour tax", "search_type": "semantic", "filters": filters})
    assert sorted(hit["doc_id"] for hit in answer["hits"]) == expected
    by_words = service.found({"query": "harbour tax", "search_type": "keyword", "filters": filters})
    assert sorted(by_words) == [name for name in expected if name != "coast"]


@pytest.mark.states("S2-043", "S2-095")
@pytest.mark.parametrize(
    "condition",
    [
        {"op": "eq", "value": 1},
        {"field": "a", "value": 1},
        {"field": "a", "op": "like", "value": "x"},
        {"field": "a", "op": "eq", "value": 1, "boost": 2},
        {"must": [{"field": "a", "op": "eq", "value": 1}]},
    ],
)
def test_a_condition_of_another_form_is_refused(service: Running, condition: Json) -> None:
    error = service.search({"query": "tax", "filters": {"must": [condition]}}, status=422)["error"]
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S2-018", "S2-047")
def test_the_fields_that_were_named_come_back_and_no_others(service: Running) -> None:
    request: Json = {"query": "lighthouse", "search_type": "keyword"}
    (all_of_it,) = service.search(request)["hits"]
    (null,) = service.search({**request, "metadata_fields": None})["hits"]
    (some,) = service.search({**request, "metadata_fields": ["title", "path", "tags"]})["hits"]
    (none,) = service.search({**request, "metadata_fields": []})["hits"]
    assert all_of_it["metadata"] == null["metadata"] == COAST["metadata"]
    assert (some["metadata"], none["metadata"]) == ({"path": "coast.txt"}, {})


@pytest.mark.states("S2-019", "S2-045", "S2-046", "S2-056")
def test_snippets_default_to_240_characters_and_can_be_changed_or_off(service: Running) -> None:
    def snippet(**more: Any) -> Any:
        (hit,) = service.search({"query": "lighthouse", "search_type": "keyword", **more})["hits"]
        return hit["snippet"]

    default = snippet()
    assert "lighthouse" in default
    assert default in COAST["text"]
    assert 200 <= len(default) <= 240
    assert snippet(include_snippets=True, snippet_max_chars=240) == default
    assert 15 <= len(snippet(snippet_max_chars=40)) <= 40
    assert 240 < len(snippet(snippet_max_chars=1_000)) <= 1_000
    assert snippet(include_snippets=False) is None
