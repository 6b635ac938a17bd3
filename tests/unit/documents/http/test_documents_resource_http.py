"""/api/v1/documents: search, put, read and delete, in the shape that all resources share."""

import json
import uuid
from typing import Any

import pytest

from tests.unit.documents.http.builders import LINES, Client, Json, Parts, app_of, client_of, document
from toolscript.core.errors import IndexUnavailable

pytestmark = pytest.mark.requirement("DOC-001", "DOC-006")

DOCUMENTS = "/api/v1/documents"
SEARCH, DELETE = "/search", f"{DOCUMENTS}/delete"
LIBRARY = [
    document(1, "Whales are mammals that live in the sea.", title="Whales", year=2019),
    document(2, "Tax law of the sea: who pays for a harbour.", title="Harbours", year=2021),
    document(3, "How to bake bread with little yeast.", title="Bread", year=2024),
]


async def put(client: Client, *documents: object) -> Json:
    return dict((await client.ask("PUT", DOCUMENTS, 200, {"documents": documents})).json())


async def search(client: Client, expected: int = 200, **body: object) -> Json:
    return dict((await client.ask("POST", SEARCH, expected, body)).json())


async def test_a_search_answers_with_the_fields_of_its_document_and_more(
    every_api: Client, every_parts: Parts
) -> None:
    await put(every_api, *LIBRARY)
    answer = await search(every_api, query="whales in the sea", top_k=2, metadata_fields=["title"])
    assert answer.keys() == {
        *("query_id", "took_ms", "total", "hits"),
        *("search_type", "fusion", "total_is", "next_cursor"),
        *("degraded", "reranked_by", "index_version", "good_match"),
    }
    assert uuid.UUID(answer["query_id"]).version == 4
    assert (answer["hits"][0]["doc_id"], answer["hits"][0]["metadata"]) == ("doc-1", {"title": "Whales"})
    assert answer["index_version"] == every_parts.index.name


async def test_the_query_id_is_in_the_log_line_of_the_request(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "toolscript.http"):
        answer = await search(api, query="sea")
    assert [getattr(record, "query_id", None) for record in caplog.records] == [answer["query_id"]]


async def test_pages_of_a_search_follow_each_other_by_cursor(api: Client) -> None:
    await put(api, *(document(number, "the same words") for number in range(7)))
    ids = list[str]()
    cursor: str | None = ""
    while cursor is not None:
        page = await search(api, query="same words", cursor=cursor, top_k=3)
        ids += [hit["doc_id"] for hit in page["hits"]]
        cursor = page["next_cursor"]
    assert sorted(ids) == [f"doc-{number}" for number in range(7)]


async def test_a_stream_has_a_line_for_each_result_and_ends_with_the_rest(api: Client) -> None:
    await put(api, *LIBRARY)
    whole = await search(api, query="sea")
    lines = (await api.ask("POST", SEARCH, 200, {"query": "sea"}, accept=LINES)).text.splitlines()
    *hits, end = [json.loads(line) for line in lines]
    assert hits == whole["hits"]
    assert end.keys() == whole.keys() - {"hits"}


async def test_an_error_of_a_stream_is_its_last_line(parts: Parts) -> None:
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        body = {"query": "x", "top_k": 6}
        answer = await limited.ask("POST", SEARCH, 200, body, accept=LINES)
    error = json.loads(answer.text)["error"]
    assert (error["code"], error["details"]["field"]) == ("FORBIDDEN", "top_k")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"query": "x", "limit": 5}, 422),
        ({"query": "x", "top_k": 0}, 422),
        ({"query": "x", "top_k": 201}, 422),
    ],
)
async def test_an_invalid_search_is_refused(api: Client, body: Json, status: int) -> None:
    error = (await api.ask("POST", SEARCH, status, body)).json()["error"]
    assert error["code"] == "VALIDATION_ERROR"


async def test_errors_speak_of_http_and_have_a_code_for_each_kind(parts: Parts, api: Client) -> None:
    missing = (await api.ask("GET", f"{DOCUMENTS}/none", 404)).json()["error"]
    assert "GET /api/v1/documents" in missing["details"]["hint"]
    unranked = (await api.ask("POST", SEARCH, 422, {"query": "x", "rerank": "cross_encoder"})).json()["error"]
    assert unranked["details"]["hint"].startswith("leave out `rerank`, or ask the operator to set TOOLSCRIPT_")
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        beyond = await search(limited, 403, query="x", top_k=6)
    assert (beyond["error"]["code"], beyond["error"]["details"]["field"]) == ("FORBIDDEN", "top_k")
    sent = await api.http.put(DOCUMENTS, content=b"x", headers={"content-type": "text/plain"})
    assert (sent.status_code, sent.json()["error"]["code"]) == (415, "UNSUPPORTED")
    sent = await api.http.put(DOCUMENTS, json={"documents": ["x" * 2_000_000]})
    assert (sent.status_code, sent.json()["error"]["code"]) == (413, "TOO_LARGE")


async def test_a_service_without_documents_refers_to_the_operator() -> None:
    async with client_of(app_of(None)) as client:
        error = (await client.ask("GET", DOCUMENTS, 503)).json()["error"]
    assert error["details"]["hint"].startswith("ask the operator to set TOOLSCRIPT_JWT_KEYS")


async def test_a_put_answers_with_the_id_state_and_chunks_of_each_document(every_api: Client) -> None:
    answer = await put(every_api, document(1), document(1, "changed"), {"id": "bad"})
    first, second, third = answer["results"]
    assert (second["id"], second["chunk_count"]) == ("doc-1", 1)
    assert first.keys() == {"id", "state", "chunk_count"}
    assert (third["id"], third["state"]) == ("bad", "refused")
    assert "text" in third["error"]
    again = await put(every_api, document(1, "changed"), {"id": "bad"})
    assert again["counts"] == {"created": 0, "updated": 0, "unchanged": 1, "refused": 1}


async def test_lines_are_answered_with_lines_and_an_early_end_with_its_error(api: Client, parts: Parts) -> None:
    async def fail(documents: object) -> None:
        if len(parts.service.batches) > 1:
            raise IndexUnavailable("gone", hint="see /readyz")

    parts.service.before = fail
    content = b"".join(json.dumps(document(number)).encode() + b"\n" for number in range(100))
    answer = await api.http.put(DOCUMENTS, content=content, headers={"content-type": LINES})
    *results, last = [json.loads(line) for line in answer.text.splitlines()]
    assert results[0] == {"id": "doc-0", "state": "created", "chunk_count": 1, "line": 1}
    assert (last["counts"]["created"], last["error"]["code"]) == (len(results), "UNAVAILABLE")


async def test_a_document_is_read_with_its_chunks_and_the_time_of_its_put(every_api: Client) -> None:
    await put(every_api, document(1, "Whales are mammals.", year=2019))
    shown = (await every_api.ask("GET", f"{DOCUMENTS}/doc-1")).json()
    updated_at = shown.pop("updated_at")
    chunks = [{"number": 0, "start": 0, "end": 19}]
    assert shown == {"id": "doc-1", "text": "Whales are mammals.", "metadata": {"year": 2019}, "chunks": chunks}
    await put(every_api, document(1, "Whales sing."))
    assert (await every_api.ask("GET", f"{DOCUMENTS}/doc-1")).json()["updated_at"] > updated_at


async def test_documents_are_deleted_one_by_one_or_by_a_list_of_ids(every_api: Client) -> None:
    await put(every_api, *LIBRARY, {"id": "search", "text": "A document named like a route."})
    answer = await every_api.ask("POST", DELETE, 200, {"ids": ["doc-1", "doc-2", "none", "doc-1"]})
    assert answer.json() == {"deleted": ["doc-1", "doc-2"], "missing": ["none"]}
    for expected in ({"deleted": ["search"], "missing": []}, {"deleted": [], "missing": ["search"]}):
        assert (await every_api.ask("DELETE", f"{DOCUMENTS}/search")).json() == expected
    assert [entry["id"] for entry in (await every_api.ask("GET", DOCUMENTS)).json()["results"]] == ["doc-3"]


async def test_some_paths_take_larger_requests(api: Client) -> None:
    ids = [f"{number:0>400}" for number in range(1_000)]
    assert len((await api.ask("POST", DELETE, 200, {"ids": ids})).json()["missing"]) == 1_000
    assert "the cursor" in (await search(api, 422, query="x", cursor="A" * 60_000))["error"]["message"]
    assert (await search(api, 413, query="x" * 200_000))["error"]["code"] == "VALIDATION_ERROR"


async def test_all_paths_share_one_budget_of_requests(parts: Parts) -> None:
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        search = ("POST", SEARCH, {"query": "x", "top_k": 5})
        requests: list[tuple[str, str, Any]] = [search, search, ("GET", DOCUMENTS, None)]
        left = [
            (await limited.ask(*request[:2], 200, request[2])).headers["ratelimit-remaining"]
            for request in requests
        ]
        assert left == ["2", "1", "0"]
        for method, path, body in [*requests, ("PUT", DOCUMENTS, {})]:
            assert "retry-after" in (await limited.ask(method, path, 429, body)).headers
