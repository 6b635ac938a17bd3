"""PUT /documents as JSON; GET and DELETE /documents."""

from urllib.parse import quote

import pytest

from tests.unit.documents.http.builders import ACME, Client, Parts, app_of, client_of, document
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.model.document import document_key
from toolscript.documents.model.filters import filterable
from toolscript.documents.model.points import IndexedChunk, IndexedDocument
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("DOC-006")


async def test_results_are_created_unchanged_or_updated(every_api: Client) -> None:
    first = await every_api.put(document(1), document(2))
    assert first["results"] == [
        {"doc_id": "doc-1", "status": "created", "passages": 1},
        {"doc_id": "doc-2", "status": "created", "passages": 1},
    ]
    second = await every_api.put(document(1), document(2, "Something else."), document(3))
    assert [result["status"] for result in second["results"]] == ["unchanged", "updated", "created"]
    assert second["counts"] == {"created": 1, "updated": 1, "unchanged": 1, "refused": 0}


async def test_a_document_is_returned_as_it_was_put_with_the_offsets_of_its_chunks(every_api: Client) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Some words follow it. " * 40 for number in range(20))
    await every_api.put(
        {"id": "long", "text": text, "title": "A title", "metadata": {"deep": {"list": [1, "a", None]}}}
    )
    answer = (await every_api.ask("GET", "/documents/long")).json()
    assert answer.keys() == {"doc_id", "text", "metadata", "passages"}
    assert answer["text"] == text
    assert answer["metadata"] == {"title": "A title", "deep": {"list": [1, "a", None]}}
    assert len(answer["passages"]) > 1
    assert [chunk["number"] for chunk in answer["passages"]] == list(range(len(answer["passages"])))
    assert answer["passages"][-1]["end"] == len(text)


@pytest.mark.parametrize(
    "name", ["a/b/c.md", "ü x", "50%25", "a?b#c", "//", "http://x/y?z=1", "..", "a+b&c=d", "健"]
)
async def test_an_id_may_be_anything_printable_and_is_reached_by_its_path(api: Client, name: str) -> None:
    await api.put({"id": name, "text": "x"})
    path = f"/documents/{quote(name, safe='')}".replace("..", "%2E%2E")
    assert (await api.ask("GET", path)).json()["doc_id"] == name
    assert (await api.ask("DELETE", path)).json() == {"deleted": [name], "missing": []}
    assert (await api.ask("GET", path, 404)).json()["error"]["code"] == "NOT_FOUND"
    assert (await api.ask("DELETE", path)).json() == {"deleted": [], "missing": [name]}


async def test_many_documents_are_removed_at_once_and_the_missing_are_listed(every_api: Client) -> None:
    await every_api.put(*(document(number) for number in range(300)))
    ids = [f"doc-{number}" for number in range(290, 310)]
    answer = (await every_api.ask("DELETE", "/documents", 200, {"ids": [*ids, "doc-290"]})).json()
    assert answer == {"deleted": ids[:10], "missing": ids[10:]}
    left = await every_api.search(cursor="*", top_k=1)
    assert left["total"] == 290


@pytest.mark.parametrize(
    "body", [{}, {"ids": "a"}, {"ids": [1]}, {"ids": [""]}, {"ids": ["x" * 513]}, {"id": "a"}]
)
async def test_an_invalid_removal_is_refused(api: Client, body: object) -> None:
    await api.ask("DELETE", "/documents", 422, body)


async def test_at_most_1000_are_removed_at_once(api: Client) -> None:
    await api.ask("DELETE", "/documents", 200, {"ids": [str(number) for number in range(1000)]})
    await api.ask("DELETE", "/documents", 422, {"ids": [str(number) for number in range(1001)]})


async def test_a_lone_surrogate_is_not_a_valid_id(api: Client) -> None:
    headers = {"content-type": "application/json"}
    answer = await api.http.request("DELETE", "/documents", content=b'{"ids": ["\\ud800"]}', headers=headers)
    assert answer.status_code == 422


@pytest.mark.requirement("DOC-004")
async def test_no_tenant_reads_or_removes_documents_of_another(every_api: Client, every_parts: Parts) -> None:
    await every_api.put(document(1))
    async with client_of(app_of(every_parts.routes()), "token-of-other") as other:
        await other.ask("GET", "/documents/doc-1", 404)
        assert (await other.ask("DELETE", "/documents/doc-1")).json()["deleted"] == []
        assert (await other.ask("DELETE", "/documents", 200, {"ids": ["doc-1"]})).json()["deleted"] == []
    await every_api.ask("GET", "/documents/doc-1")


@pytest.mark.parametrize(
    ("bad", "doc_id", "message"),
    [
        (7, None, "a document must be a JSON object"),
        ({}, None, "id is missing"),
        ({"id": 7, "text": "x"}, None, "id must be text"),
        ({"id": "a"}, "a", "text is missing"),
        ({"id": "a", "text": ["x"]}, "a", "text must be text"),
        ({"id": "a", "text": " "}, "a", "text is blank"),
        ({"id": " a", "text": "x"}, " a", "id must be"),
        ({"id": "a\nb", "text": "x"}, "a\nb", "id must be printable"),
        ({"id": "x" * 600, "text": "x"}, "x" * 512, "id must be 1 to 512 long"),
        ({"id": "a", "text": "x", "title": 7}, "a", "title must be text"),
        ({"id": "a", "text": "x", "metadata": []}, "a", "metadata must be a JSON object"),
        ({"id": "a", "text": "x", "metadata": {"a": "x" * 20_000}}, "a", "metadata is larger than 16 KiB"),
        ({"id": "a", "text": "x", "lang": "en"}, "a", "'lang' is not one of id, text, title and metadata"),
    ],
)
async def test_an_invalid_document_is_refused_alone(
    api: Client, bad: object, doc_id: str | None, message: str
) -> None:
    answer = await api.put(document(1), bad, document(2))
    assert [result["status"] for result in answer["results"]] == ["created", "refused", "created"]
    refused = answer["results"][1]
    assert refused["doc_id"] == doc_id
    assert refused["error"].startswith(message)
    assert answer["counts"] == {"created": 2, "updated": 0, "unchanged": 0, "refused": 1}


async def test_a_title_of_its_own_wins_over_that_of_the_metadata(api: Client) -> None:
    await api.put({"id": "a", "text": "x", "title": "outer", "metadata": {"title": "inner", "n": 1}})
    assert (await api.ask("GET", "/documents/a")).json()["metadata"] == {"title": "outer", "n": 1}


@pytest.mark.parametrize(
    "body", [[], {}, {"documents": {}}, {"documents": [], "prune": True}, {"documents": None}, "x", 7]
)
async def test_a_body_that_lists_no_documents_is_refused(api: Client, body: object) -> None:
    answer = await api.http.put("/documents", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 50_000, b'{"documents": 1' + b"0" * 5000 + b"}"])
async def test_a_body_that_is_not_json_is_refused(api: Client, content: bytes) -> None:
    answer = await api.http.put("/documents", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "?"])
async def test_another_content_type_gets_415_with_the_supported_ones(api: Client, kind: str) -> None:
    answer = await api.http.put("/documents", content=b"{}", headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "VALIDATION_ERROR")
    assert "application/x-ndjson" in answer.json()["error"]["message"]


async def test_documents_are_written_64_at_a_time_and_each_batch_is_reported(api: Client, parts: Parts) -> None:
    await api.put(*(document(number) for number in range(150)), {})
    assert parts.service.batches == [64, 64, 22]
    assert [principal for principal, _ in parts.written] == [ACME] * 3
    assert sum(len(results) for _, results in parts.written) == 151


async def test_large_documents_are_written_a_mebibyte_at_a_time(api: Client, parts: Parts) -> None:
    parts.service.forgets = True
    await api.put(*(document(number, "x" * 300_000) for number in range(3)))
    assert parts.service.batches == [3]
    await api.put_lines(
        b"".join(b'{"id": "%d", "text": "%s"}\n' % (number, b"x" * 300_000) for number in range(5))
    )
    assert parts.service.batches[1:] == [3, 2]


async def test_an_engine_that_fails_is_an_error_of_the_whole_request(api: Client, parts: Parts) -> None:
    async def fail(_: object) -> None:
        raise IndexUnavailable("the index does not answer")

    parts.service.before = fail
    assert (await api.put(document(1), expected=503))["error"]["code"] == "UNAVAILABLE"


async def test_only_metadata_that_the_plan_allows_is_returned(api: Client, parts: Parts) -> None:
    await api.put({"id": "a", "text": "x", "title": "A title", "metadata": {"salary": 7}})
    async with client_of(app_of(parts.routes()), "token-of-curious") as curious:
        assert (await curious.ask("GET", "/documents/a")).json()["metadata"] == {"title": "A title"}
    assert (await api.ask("GET", "/documents/a")).json()["metadata"] == {"title": "A title", "salary": 7}


async def test_a_partly_written_document_is_unavailable_and_not_truncated(api: Client, parts: Parts) -> None:
    await api.put({"id": "a", "text": "\n\n".join(f"Paragraph {number}. " * 40 for number in range(20))})
    stored, first = parts.index.of(ACME.tenant), ChunkId(document_key(ACME.tenant, "a"), 0)
    header = (await stored.headers([first.key]))[first.key]
    chunk = (await stored.passages([first]))[first]
    vector = await HashEmbedder().embed_query(chunk.text)
    await stored.put([IndexedDocument(header, filterable(header.metadata), [IndexedChunk(chunk, vector, {})])])
    error = (await api.ask("GET", "/documents/a", 503)).json()["error"]
    assert (error["code"], error["details"]["hint"]) == ("UNAVAILABLE", "put it again")


async def test_of_two_documents_with_one_id_the_last_counts(api: Client) -> None:
    await api.put({"id": "a", "text": "first"}, {"id": "a", "text": "second"})
    assert (await api.ask("GET", "/documents/a")).json()["text"] == "second"


async def test_numbers_round_trip_however_large_or_small(every_api: Client) -> None:
    numbers = [10**400, -(2**70), 2**63, 2**53 + 1, 1e308, 5e-324, 0.1, -0.0, 7, True]
    answer = await every_api.put({"id": "a", "text": "x", "metadata": {"n": numbers}})
    assert answer["counts"]["created"] == 1, answer
    assert (await every_api.ask("GET", "/documents/a")).json()["metadata"] == {"n": numbers}
    assert (await every_api.search("x"))["hits"][0]["metadata"] == {"n": numbers}
