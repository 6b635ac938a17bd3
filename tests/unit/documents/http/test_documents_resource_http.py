"""/api/v1/documents: search, put, read and delete, in the shape that all resources share."""

import asyncio
import json
import uuid
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.unit.documents.http.builders import LINES, Client, Json, Parts, app_of, client_of, document
from tests.unit.documents.http.test_put_lines_http import SOON
from tests.unit.documents.http.test_upload_slots_http import Sender
from toolscript.core.errors import IndexUnavailable
from toolscript.documents.http.routes import LARGER_REQUESTS
from toolscript.documents.http.upload_limits import UploadSlots

pytestmark = pytest.mark.requirement("DOC-001", "DOC-006")

DOCUMENTS = "/api/v1/documents"
SEARCH, DELETE = f"{DOCUMENTS}/search", f"{DOCUMENTS}/delete"
EVENTS = "text/event-stream"
RENAMED = {"id": "doc_id", "chunk": "passage", "chunks": "passages", "chunk_count": "passages", "state": "status"}
LIBRARY = [
    document(1, "Whales are mammals that live in the sea.", title="Whales", year=2019),
    document(2, "Tax law of the sea: who pays for a harbour.", title="Harbours", year=2021),
    document(3, "How to bake bread with little yeast.", title="Bread", year=2024),
]


def as_alias(entry: Json) -> Json:
    return {RENAMED.get(name, name): value for name, value in entry.items()}


async def put(client: Client, *documents: object) -> Json:
    return dict((await client.ask("PUT", DOCUMENTS, 200, {"documents": documents})).json())


async def search(client: Client, expected: int = 200, **body: object) -> Json:
    return dict((await client.ask("POST", SEARCH, expected, body)).json())


async def test_a_search_answers_with_query_id_results_and_metadata(every_api: Client, every_parts: Parts) -> None:
    await put(every_api, *LIBRARY)
    answer = await search(every_api, query="whales in the sea", limit=2, metadata_fields=["title"])
    assert list(answer) == ["query_id", "results", "metadata"]
    assert uuid.UUID(answer["query_id"]).version == 4
    assert (answer["results"][0]["id"], answer["results"][0]["metadata"]) == ("doc-1", {"title": "Whales"})
    assert answer["metadata"].keys() == {
        *("search_type", "fusion", "took_ms", "total", "total_is", "next_cursor"),
        *("degraded", "reranked_by", "index_version", "weights_version", "good_match"),
    }
    assert answer["metadata"]["index_version"] == every_parts.index.name
    assert answer["metadata"]["weights_version"] is None


async def test_a_search_and_its_alias_find_the_same(api: Client, parts: Parts) -> None:
    await put(api, *LIBRARY)
    answer = await search(api, query="sea", limit=2)
    alias = await api.search("sea", top_k=2)
    assert [as_alias(result) for result in answer["results"]] == alias["hits"]
    same = alias.keys() - {"hits", "query_id", "took_ms"}
    assert {name: answer["metadata"][name] for name in same} == {name: alias[name] for name in same}
    assert [entry["query_id"] for entry in parts.searched] == [answer["query_id"], alias["query_id"]]
    assert parts.searched[0]["query"] == parts.searched[1]["query"]


async def test_the_query_id_is_in_the_log_line_of_the_request(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "toolscript.http"):
        answer = await search(api, query="sea")
    assert [getattr(record, "query_id", None) for record in caplog.records] == [answer["query_id"]]


async def test_pages_of_a_search_follow_each_other_by_cursor(api: Client) -> None:
    await put(api, *(document(number, "the same words") for number in range(7)))
    ids, cursor = list[str](), "*"
    while cursor:
        page = await search(api, query="same words", cursor=cursor, limit=3)
        ids += [result["id"] for result in page["results"]]
        cursor = page["metadata"]["next_cursor"]
    assert sorted(ids) == [f"doc-{number}" for number in range(7)]


async def test_a_stream_has_a_line_or_event_for_each_result_and_ends_with_the_rest(api: Client) -> None:
    await put(api, *LIBRARY)
    whole = await search(api, query="sea")
    lines = (await api.ask("POST", SEARCH, 200, {"query": "sea"}, accept=LINES)).text.splitlines()
    *results, end = [json.loads(line) for line in lines]
    assert results == whole["results"]
    assert end.keys() == {"query_id", "metadata"}
    assert end["metadata"].keys() == whole["metadata"].keys()
    events = (await api.ask("POST", SEARCH, 200, {"query": "sea"}, accept=EVENTS)).text
    kinds = [line.removeprefix("event: ") for line in events.splitlines() if line.startswith("event: ")]
    assert kinds == [*["result"] * len(results), "end"]


async def test_an_error_of_a_stream_has_the_code_of_its_kind(parts: Parts) -> None:
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        body = {"query": "x", "limit": 6}
        answer = await limited.ask("POST", SEARCH, 200, body, accept=LINES)
    error = json.loads(answer.text)["error"]
    assert (error["code"], error["details"]["field"]) == ("PLAN_EXCEEDED", "limit")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"query": "x", "top_k": 5}, 422),
        ({"query": "x", "limit": 0}, 422),
        ({"query": "x", "limit": 201}, 422),
    ],
)
async def test_an_invalid_search_is_refused(api: Client, body: Json, status: int) -> None:
    error = (await api.ask("POST", SEARCH, status, body)).json()["error"]
    assert error["code"] == "VALIDATION_ERROR"


async def test_errors_speak_of_http_and_have_a_code_for_each_kind(parts: Parts, api: Client) -> None:
    missing = (await api.ask("GET", f"{DOCUMENTS}/none", 404)).json()["error"]
    assert "GET /api/v1/documents" in missing["details"]["hint"]
    unranked = (await api.ask("POST", SEARCH, 422, {"query": "x", "rerank": "llm"})).json()["error"]
    assert unranked["details"]["hint"].startswith("leave out `rerank`, or ask the operator to set TOOLSCRIPT_")
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        beyond = await search(limited, 403, query="x", limit=6)
    assert (beyond["error"]["code"], beyond["error"]["details"]["field"]) == ("PLAN_EXCEEDED", "limit")
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
    alias = await every_api.put(document(1, "changed"), {"id": "bad"})
    again = await put(every_api, document(1, "changed"), {"id": "bad"})
    assert [as_alias(result) for result in again["results"]] == alias["results"]
    assert again["counts"] == alias["counts"] == {"created": 0, "updated": 0, "unchanged": 1, "refused": 1}


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


async def test_the_new_paths_have_the_limits_of_their_aliases(api: Client) -> None:
    assert LARGER_REQUESTS[f"POST {SEARCH}"] == LARGER_REQUESTS["POST /search"]
    assert LARGER_REQUESTS[f"PUT {DOCUMENTS}"] == LARGER_REQUESTS["PUT /documents"]
    assert LARGER_REQUESTS[f"POST {DELETE}"] == LARGER_REQUESTS["DELETE /documents"]
    ids = [f"{number:0>400}" for number in range(1_000)]
    assert len((await api.ask("POST", DELETE, 200, {"ids": ids})).json()["missing"]) == 1_000
    assert "the cursor" in (await search(api, 422, query="x", cursor="A" * 60_000))["error"]["message"]
    assert (await search(api, 413, query="x" * 200_000))["error"]["code"] == "TOO_LARGE"


async def test_a_path_and_its_alias_share_one_budget_of_requests(parts: Parts) -> None:
    async with client_of(app_of(parts.routes()), "token-of-limited") as limited:
        requests: list[tuple[str, str, Any]] = [
            ("POST", "/search", {"query": "x", "top_k": 5}),
            ("POST", SEARCH, {"query": "x", "limit": 5}),
            ("GET", DOCUMENTS, None),
        ]
        left = [
            (await limited.ask(*request[:2], 200, request[2])).headers["ratelimit-remaining"]
            for request in requests
        ]
        assert left == ["2", "1", "0"]
        for method, path, body in [*requests, ("PUT", DOCUMENTS, {}), ("PUT", "/documents", {})]:
            assert "retry-after" in (await limited.ask(method, path, 429, body)).headers


async def test_a_path_and_its_alias_share_the_slots_of_uploads(parts: Parts) -> None:
    routes, first = replace(parts.routes(), streams=UploadSlots(8, 1, 0.05)), Sender()

    async def upload(path: str, sender: Sender) -> httpx2.Response:
        async with client_of(app_of(routes)) as client:
            return await client.http.put(path, content=sender.body(), headers={"content-type": LINES})

    async with asyncio.timeout(SOON):
        running = asyncio.create_task(upload("/documents", first))
        await first.is_read.wait()
        for path in (DOCUMENTS, "/documents"):
            second = Sender()
            answer = await upload(path, second)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
            assert not second.is_read.is_set()
        first.may_end.set()
        assert (await running).status_code == 200
