"""S2: responses of `POST /search`: access, order and errors."""

import json
import math
import statistics
import uuid
from collections.abc import Iterator, Mapping

import pytest

from tests.contracts.source.s2_service import LIBRARY, Json, Running, cosine_of_best, running
from toolscript.core.settings.service import Settings

QUERY = "who pays the tax of the harbour"
LINES, EVENTS = "application/x-ndjson", "text/event-stream"


@pytest.fixture(scope="module")
def embedded() -> dict[str, list[str]]:
    """Return the embedded chunks by document."""
    return {}


@pytest.fixture(scope="module")
def service(
    engines: Settings,
    migrated_database: str,
    tmp_path_factory: pytest.TempPathFactory,
    embedded: dict[str, list[str]],
) -> Iterator[Running]:
    with running(engines, migrated_database, tmp_path_factory.mktemp("s2")) as service:
        for document in LIBRARY:
            before = len(service.endpoint.asked)
            service.put(document)
            embedded[str(document["id"])] = [text for texts in service.endpoint.asked[before:] for text in texts]
        service.put({"id": "lease", "text": "Another lease of another harbour."}, tenant="other")
        yield service


def scores(service: Running, **asked: object) -> dict[str, float]:
    """Return the scores in the order of the answer."""
    return {hit["doc_id"]: hit["score"] for hit in service.search({"query": QUERY, **asked})["hits"]}


@pytest.mark.states("S2-048", "S2-049", "S2-050", "S2-052", "S2-053", "S2-054", "S2-055", "S2-056", "S2-027")
@pytest.mark.states("S2-097")
@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
def test_an_answer_has_the_form_of_the_document(service: Running, search_type: str) -> None:
    answer = service.search({"query": QUERY, "search_type": search_type, "metadata_fields": ["title"]})
    again = service.search({"query": QUERY, "search_type": search_type})
    assert str(uuid.UUID(answer["query_id"])) == answer["query_id"] != again["query_id"]
    assert isinstance(answer["took_ms"], float)
    assert 0 < answer["took_ms"] < 60_000
    assert isinstance(answer["total"], int)
    value = [hit["score"] for hit in answer["hits"]]
    assert value == sorted(value, reverse=True)
    best = answer["hits"][0]
    assert (best["doc_id"], best["metadata"]) == ("verdict", {"title": "Verdict"})
    assert best["snippet"] == "The court has ruled: whoever owns the harbour pays the tax."
    for hit in answer["hits"]:
        assert hit.keys() >= {"doc_id", "score", "metadata", "snippet"}
        assert 0 <= hit["score"] <= 1


@pytest.mark.states("S2-021", "S2-022", "S2-079")
async def test_semantic_embeds_the_query_as_it_stands_and_orders_by_the_cosine_of_the_best_chunk(
    service: Running, embedded: dict[str, list[str]]
) -> None:
    query = "Harbour;  then THE lighthouse, then tax?"
    before = len(service.endpoint.asked)
    answer = service.search({"query": query, "search_type": "semantic"})
    assert service.endpoint.asked[before:] == [[query]]
    expected = {name: await cosine_of_best(query, passages) for name, passages in embedded.items()}
    assert len(embedded["coast"]) > 1
    assert [hit["doc_id"] for hit in answer["hits"]] == sorted(expected, key=lambda name: -expected[name])
    for hit in answer["hits"]:
        assert hit["score"] == pytest.approx(max(0.0, expected[hit["doc_id"]]), abs=1e-5)
    assert (answer["fusion"], answer["reranked_by"], answer["degraded"]) == (None, None, [])


@pytest.mark.states("S2-006", "S2-023", "S2-083")
def test_sparse_search_matches_terms_and_a_rare_one_counts_more(service: Running) -> None:
    assert list(scores(service, search_type="keyword", query="lighthouse")) == ["coast"]
    assert list(scores(service, search_type="keyword", query="yeast harbour")) == ["bread", "lease", "verdict"]
    assert scores(service, search_type="keyword", query="submarine") == {}


@pytest.mark.states("S2-008", "S2-016", "S2-024", "S2-081", "S2-084")
def test_rrf_adds_reciprocal_ranks_of_what_both_retrievers_found(service: Running) -> None:
    lists = [list(scores(service, search_type=kind)) for kind in ("semantic", "keyword")]
    expected = {
        name: sum(1 / (61 + result.index(name)) for result in lists if name in result) for name in lists[0]
    }
    joined = scores(service, search_type="hybrid", fusion="rrf")
    assert joined == pytest.approx({name: value * 61 / 2 for name, value in expected.items()})
    assert list(joined) == sorted(expected, key=lambda name: (-expected[name], list(joined).index(name)))
    assert len(lists[1]) == 3


@pytest.mark.states("S2-008", "S2-016", "S2-024", "S2-081", "S2-084")
def test_zscore_adds_the_standard_scores_of_both_retrievers(service: Running) -> None:
    request = {"must": [{"field": "tags", "op": "exists"}]}
    result = [scores(service, search_type=kind, filters=request) for kind in ("semantic", "keyword")]
    fused_scores = [_standings(item, result[0]) for item in result]
    expected = {name: statistics.fmean(item[name] for item in fused_scores) for name in result[0]}
    joined = scores(service, search_type="hybrid", fusion="zscore", filters=request)
    assert len(joined) == 3
    assert list(joined) == sorted(expected, key=lambda name: -expected[name])
    between = {name: 1 / (1 + math.exp(-value)) for name, value in expected.items()}
    assert joined == pytest.approx(between, abs=1e-3)


def _standings(given: Mapping[str, float], names: Mapping[str, float]) -> dict[str, float]:
    values = [given.get(name, 0.0) for name in names]
    return {name: (given.get(name, 0.0) - statistics.fmean(values)) / statistics.pstdev(values) for name in names}


@pytest.mark.states("S2-031", "S2-033", "S2-034")
def test_by_default_nothing_is_reranked_streamed_or_given_a_cursor(service: Running) -> None:
    answer = service.send("POST", "/search", {"query": QUERY, "top_k": 1}, service.as_tenant())
    assert answer.headers["content-type"] == "application/json"
    output = answer.json()
    assert (output["reranked_by"], output["next_cursor"], len(output["hits"])) == (None, None, 1)


@pytest.mark.states("S2-087")
def test_a_token_of_an_answer_leads_to_the_next_page_and_belongs_to_its_tenant(service: Running) -> None:
    whole, pages, cursor = service.found({"query": QUERY}), [], "*"
    while cursor:
        page = service.search({"query": QUERY, "top_k": 1, "cursor": cursor})
        pages += [hit["doc_id"] for hit in page["hits"]]
        cursor, last = page["next_cursor"], cursor
    assert pages == whole
    error = service.search({"query": QUERY, "top_k": 1, "cursor": last}, "other", 422)["error"]
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S2-088")
def test_hits_are_streamed_as_lines_or_events_to_clients_that_accept_them(service: Running) -> None:
    whole = service.found({"query": QUERY})
    output = {
        kind: service.send("POST", "/search", {"query": QUERY}, {**service.as_tenant(), "accept": kind}).text
        for kind in (LINES, EVENTS)
    }
    *hits, end = [json.loads(line) for line in output[LINES].splitlines()]
    assert ([hit["doc_id"] for hit in hits], end["total"]) == (whole, 4)
    events = output[EVENTS].strip().split("\n\n")
    assert [event.split("\n")[0] for event in events] == ["event: hit"] * len(whole) + ["event: end"]


@pytest.mark.states("S2-025", "S2-026", "S2-077")
def test_the_tenant_claim_decides_which_documents_are_visible(service: Running) -> None:
    for kind in ("semantic", "keyword", "hybrid"):
        answer = service.search({"query": "lease harbour tax", "search_type": kind}, "other")
        assert [hit["snippet"] for hit in answer["hits"]] == ["Another lease of another harbour."], kind
        assert answer["total"] == 1
        assert service.found({"query": "lease harbour tax", "search_type": kind}, "third") == []
    for path, status in (("/documents/lease", 200), ("/documents/verdict", 404)):
        assert service.send("GET", path, headers=service.as_tenant("other")).status_code == status
    elsewhere = {**service.as_tenant("other"), "x-tenant-id": "acme", "x-debug-tenant": "acme"}
    assert len(service.send("POST", "/search?tenant_id=acme", {"query": QUERY}, elsewhere).json()["hits"]) == 1
    assert service.search({"query": QUERY, "tenant_id": "acme"}, "other", 422)["error"]["code"]


@pytest.mark.states("S2-066", "S2-075", "S2-076")
def test_in_production_a_signed_token_is_needed_and_no_header_replaces_it(service: Running) -> None:
    strangers: dict[str, Mapping[str, str]] = {
        "nobody": {},
        "bypass": {"x-debug-bypass-auth": "1"},
        "expired": service.as_tenant(exp=1),
        "of another issuer": service.as_tenant(iss="https://elsewhere.example"),
        "without a tenant": {"authorization": f"Bearer {service.issuer.token(None)}"},
        "made up": {"authorization": "Bearer a.b.c"},
    }
    for who, headers in strangers.items():
        answer = service.send("POST", "/search", {"query": QUERY}, headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED"), who


@pytest.mark.states("S2-064", "S2-067")
@pytest.mark.parametrize(
    ("asked", "status"), [({}, 400), ({"query": " "}, 400), ({"query": 7}, 422), ({"query": "x", "top_k": 0}, 422)]
)
def test_invalid_requests_get_the_error_schema(service: Running, asked: Json, status: int) -> None:
    error = service.search(asked, status=status)["error"]
    assert (error.keys(), error["code"]) == ({"code", "message", "details"}, "VALIDATION_ERROR")


@pytest.mark.states("S2-065")
def test_without_embeddings_search_is_sparse_and_the_answer_says_so(service: Running) -> None:
    service.endpoint.answer_once({"error": {"message": "no"}}, 400)
    answer = service.search({"query": "yeast", "search_type": "semantic"})
    assert ([hit["doc_id"] for hit in answer["hits"]], answer["degraded"]) == (["bread"], ["embedding"])


@pytest.mark.states("S2-030", "S2-057", "S2-082")
def test_health_is_ok_and_nothing_else_while_adapters_answer(service: Running) -> None:
    answer = service.send("GET", "/search/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.states("S2-059", "S2-097")
def test_the_api_describes_request_and_answer_by_their_models(service: Running) -> None:
    described = service.send("GET", "/openapi.json").json()
    schemas = described["components"]["schemas"]
    post = described["paths"]["/search"]["post"]
    requests = post["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    output = post["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert schemas[requests]["properties"].keys() >= {
        *("query", "top_k", "offset", "search_type", "fusion", "filters"),
        *("include_snippets", "snippet_max_chars", "metadata_fields"),
    }
    assert schemas[output]["properties"].keys() >= {"query_id", "took_ms", "total", "hits"}
    assert "/search/health" in described["paths"]
