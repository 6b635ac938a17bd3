"""Errors over HTTP have one schema. Failing engines: tests/unit/server/faults."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.conftest import Installation
from tests.support.faults import Fault
from tests.unit.conftest import Api
from toolscript.server.serve import open_app


def error_of(answer: object) -> dict[str, object]:
    body = answer.json()  # type: ignore[attr-defined]
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message", "details"}
    error: dict[str, object] = body["error"]
    return error


BAD: list[tuple[object, int]] = [
    ({"query": ""}, 400),
    ({"query": " \n\t"}, 400),
    ({"query": "x" * 1001}, 422),
    ({"query": "x", "skill_limit": 0}, 422),
    ({"query": "x", "skill_threshold": 2}, 422),
    ({"query": "x", "limit": 0}, 422),
    ({"query": "x", "limit": 101}, 422),
    ({"query": "x", "tool_threshold": 1.1}, 422),
    ({"query": "x", "tool_threshold": -0.1}, 422),
    ({"query": "x", "item_type": "spoon"}, 422),
    ({"query": "x", "search_type": "psychic"}, 422),
    ({"query": "x", "strategy": "astrology"}, 422),
    ({"query": "x", "misspelt": 1}, 422),
    ({"query": 7}, 422),
    ({}, 422),
    ([], 422),
]


@pytest.mark.requirement("API-002", "API-003", "EC-004")
async def test_a_bad_request_gets_the_error_schema(api: Api, subtests: pytest.Subtests) -> None:
    for body, status in BAD:
        with subtests.test(body=body, status=status):
            answer = await api.client.post("/api/v1/search", json=body)
            assert answer.status_code == status
            assert error_of(answer)["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/nowhere", 404, "NOT_FOUND"), ("DELETE", "/api/v1/search", 405, "VALIDATION_ERROR")],
)
async def test_errors_of_the_framework_have_the_same_schema(
    api: Api, method: str, path: str, status: int, code: str
) -> None:
    answer = await api.client.request(method, path)
    assert answer.status_code == status
    assert error_of(answer)["code"] == code


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/skills", {"GET", "POST"}),
        ("/api/v1/skills/mail", {"GET", "PUT", "PATCH"}),
        ("/api/v1/audit", {"GET"}),
        ("/openapi.json", {"GET", "HEAD"}),
    ],
)
async def test_a_405_lists_the_allowed_methods(api: Api, path: str, methods: set[str]) -> None:
    answer = await api.client.request("TRACE", path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == methods


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 50_000, b'{"query": 1' + b"0" * 5_000 + b"}"])
async def test_an_invalid_json_body_gets_the_error_schema(api: Api, content: bytes) -> None:
    answer = await api.client.post("/api/v1/search", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert error_of(answer)["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_without_end_is_refused_before_it_is_read(api: Api, declared: bool) -> None:
    async def forever() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b" " * 1024

    content = b" " * 1_000_000 if declared else forever()
    answer = await api.client.post("/api/v1/search", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert error_of(answer)["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("API-003")
async def test_every_response_has_a_request_id_and_a_valid_one_is_kept(api: Api) -> None:
    assert len((await api.search("read a file")).headers["x-request-id"]) == 32
    assert len((await api.client.get("/nowhere")).headers["x-request-id"]) == 32
    mine = await api.client.get("/livez", headers={"x-request-id": "trace-42"})
    assert mine.headers["x-request-id"] == "trace-42"
    evil = await api.client.get("/livez", headers={"x-request-id": "a b\tc"})
    assert evil.headers["x-request-id"] != "a b\tc"


@pytest.mark.requirement("BR-004")
async def test_a_server_that_starts_without_postgresql_answers_without_schemas_and_rules(
    filled: Installation,
) -> None:
    nowhere = {**filled.environment, "TOOLSCRIPT_POSTGRES_URL": "postgresql://x@127.0.0.1:1/x"}
    async with open_app(Installation(nowhere).settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = (await client.post("/api/v1/search", json={"query": "create pull request"})).json()
    assert answer["tools"][0]["name"] == "create_pull_request"
    assert answer["metadata"]["degraded"] == ["catalog", "schemas", "curation"]


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING])
async def test_without_qdrant_the_server_serves_and_says_that_no_search_works(fragile: Api, fault: Fault) -> None:
    await fragile.qdrant.fail(fault)
    answer = await fragile.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "unready")
    assert (await fragile.client.get("/livez")).status_code == 200


async def test_readiness_names_the_part_that_is_missing(fragile: Api) -> None:
    await fragile.postgres.fail(Fault.REFUSED)
    answer = await fragile.client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    parts = answer.json()["parts"]
    assert {name: part["ok"] for name, part in parts.items()} == {
        "embedding": True,
        "index": True,
        "live_index": True,
        "catalog": False,
        "library": True,
        "index_contents": True,
        "skill_contents": True,
    }


async def test_readiness_is_ok_when_every_part_is(api: Api) -> None:
    assert (await api.client.get("/readyz")).json()["status"] == "ready"


async def test_a_fault_of_the_setup_says_that_waiting_does_not_help(api: Api) -> None:
    answer = await api.client.post("/search", json={"query": "x"})
    assert answer.status_code == 503
    details = error_of(answer)["details"]
    assert isinstance(details, dict)
    assert details["retryable"] is False
