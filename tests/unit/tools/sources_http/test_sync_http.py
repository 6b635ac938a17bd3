"""POST /api/v1/jobs and its jobs, over HTTP on the real engines and real MCP servers."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.unit.tools.sources_http.builders import JOBS, Service, catalog, described
from toolscript.core.web.request_context import MAX_BYTES
from toolscript.tools.http.jobs import MAX_ITEMS, MAX_JOB_BYTES

pytestmark = pytest.mark.requirement("SK-010")


@pytest.mark.requirement("SK-009")
async def test_items_that_are_posted_are_in_the_catalog_when_the_job_is_done(service: Service) -> None:
    body = catalog("one", described("a", "Does a."), described("b", input_schema={"type": "object"}))
    answer = await service.client.post(JOBS, json=body)
    assert answer.status_code == 202
    accepted = answer.json()
    assert (answer.headers["Location"], accepted["state"]) == (f"{JOBS}/{accepted['id']}", "queued")
    job = await service.until_over(accepted["id"])
    assert (job["id"], job["state"], job["source"]) == (accepted["id"], "done", "one")
    assert job["progress"] == {"done": 2, "total": 2}
    assert job["report"]["stored"] == {"added": 2, "changed": 0, "unchanged": 0, "held": 0}
    assert (job["error"], job["report"]["removed"]) == (None, 0)
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]
    assert (await service.items("one")).keys() == {"a", "b"}
    again = await service.synced(body)
    assert again["report"]["stored"]["unchanged"] == 2


@pytest.mark.requirement("SK-009")
async def test_pruning_is_optional_and_limited_to_its_source(service: Service) -> None:
    await service.synced(catalog("two", described("a"), described("b")))
    await service.synced(catalog("three", described("a")))
    await service.synced(catalog("two", described("a")))
    assert (await service.items("two")).keys() == {"a", "b"}
    job = await service.synced(catalog("two", described("a"), prune=True))
    assert (job["report"]["removed"], job["report"]["pruned"]) == (1, True)
    assert (await service.items("two")).keys() == {"a"}
    assert (await service.items("three")).keys() == {"a"}


async def test_an_invalid_item_is_reported_and_prevents_pruning(service: Service) -> None:
    await service.synced(catalog("four", described("a"), described("b")))
    job = await service.synced(catalog("four", described("a"), {"server": "x"}, prune=True))
    assert job["report"]["refused"] == [{"where": "item 2", "reason": "name is missing"}]
    assert (await service.items("four")).keys() == {"a", "b"}


async def test_a_failed_job_has_a_reason(service: Service) -> None:
    job = await service.synced(catalog("empty", prune=True), state="failed")
    assert "no item could be read" in job["error"]


async def test_text_that_no_database_stores_is_accepted(service: Service) -> None:
    body = '{"source": " odd ", "items": [{"server": "s", "name": "n", "description": "\\u0000 \\ud83d"}]}'
    answer = await service.client.post(JOBS, content=body)
    job = await service.until_over(answer.json()["id"])
    assert (job["state"], job["source"]) == ("done", "odd")
    assert (await service.items("odd"))["n"].item.description == "\ufffd \ufffd"


BAD_BODIES: dict[str, Any] = {
    "no object": [],
    "a text": "plain",
    "no source": {"items": []},
    "no items": {"source": "x"},
    "items that are no list": {"source": "x", "items": {}},
    "too many items": {"source": "x", "items": [1] * (MAX_ITEMS + 1)},
    "a blank source": {"source": " ", "items": []},
    "a long source": {"source": "x" * 201, "items": []},
    "the source of a server": {"source": "mcp:plain", "items": []},
    "items and servers": {"source": "x", "items": [], "servers": ["plain"]},
    "a server that is no name": {"servers": [{"command": "sh", "args": ["-c", "true"]}]},
    "a command": {"command": "sh", "args": ["-c", "true"]},
    "a config": {"mcpServers": {"x": {"command": "sh"}}},
    "an address": {"servers": ["plain"], "url": "http://127.0.0.1/"},
    "an environment": {"servers": ["plain"], "env": {"PATH": "/evil"}},
}


@pytest.mark.parametrize("what", BAD_BODIES)
async def test_a_body_of_neither_form_is_refused(service: Service, what: str) -> None:
    before = (await service.ask("GET", JOBS, limit=1))["results"]
    error = await service.refused("POST", JOBS, 422, BAD_BODIES[what])
    assert error["code"] == "VALIDATION_ERROR"
    assert (await service.ask("GET", JOBS, limit=1))["results"] == before


@pytest.mark.parametrize("text", ["{", "\xff", "[" * 50_000])
async def test_an_invalid_json_body_is_refused(service: Service, text: str) -> None:
    answer = await service.client.post(JOBS, content=text.encode("latin-1"))
    assert answer.status_code == 422
    assert "not JSON" in answer.json()["error"]["message"]


async def test_a_catalog_may_be_larger_than_other_requests_up_to_a_limit(service: Service) -> None:
    long = catalog("long", described("a", "word " * 19_000), described("b", "word " * 19_000))
    assert len(json.dumps(long)) > 2 * MAX_BYTES
    assert (await service.synced(long))["report"]["stored"]["added"] == 2
    answer = await service.client.post(JOBS, content=b" " * (MAX_JOB_BYTES + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TOO_LARGE")
    answer = await service.client.post("/api/v1/search", content=b" " * (MAX_BYTES + 1))
    assert answer.status_code == 413


async def test_servers_over_stdio_and_http_are_synced_completely(service: Service) -> None:
    job = await service.synced({"servers": ["plain", "modern"]})
    assert job["source"] == "mcp:modern, mcp:plain"
    modern, plain = job["report"]["servers"]
    assert (modern["server"], modern["failed"], modern["stored"]["added"]) == ("modern", None, 6)
    assert (plain["server"], plain["failed"], plain["stored"]["added"]) == ("plain", None, 12)
    kinds = [stored.item.kind for stored in (await service.items("mcp:modern")).values()]
    assert sorted(kinds) == ["prompt"] + ["tool"] * 5
    assert job["progress"] == {"done": 2, "total": 2}


@pytest.mark.parametrize("body", [{}, {"servers": []}, None])
async def test_without_names_all_servers_are_synced_and_failures_are_reported(
    service: Service, body: object
) -> None:
    job = await service.synced(body, state="failed")
    reports = {report["server"]: report for report in job["report"]["servers"]}
    assert job["error"] == "2 of 4 servers could not be synced: dying, unset"
    assert "NOBODY_SET_THIS" in reports["unset"]["failed"]
    assert reports["dying"] == {"server": "dying", "failed": "the process ended with exit code 3"}
    assert reports["plain"]["stored"]["unchanged"] + reports["plain"]["stored"]["added"] == 12


async def test_an_unknown_server_is_not_found(service: Service) -> None:
    error = await service.refused("POST", JOBS, 404, {"servers": ["plain", "sh -c true"]})
    assert (error["code"], error["details"]["servers"]) == ("NOT_FOUND", ["sh -c true"])
    assert "modern, plain" in error["details"]["hint"]


async def test_jobs_come_page_by_page_the_latest_first(service: Service) -> None:
    ids = [(await service.synced(catalog("pages", described(str(number)))))["id"] for number in range(3)]
    first = await service.ask("GET", JOBS, limit=2)
    assert [job["id"] for job in first["results"]] == ids[:0:-1]
    second = await service.ask("GET", JOBS, limit=2, cursor=first["next_cursor"])
    assert second["results"][0]["id"] == ids[0]


async def test_an_unknown_job_is_not_found(service: Service) -> None:
    assert (await service.refused("GET", f"{JOBS}/999999", 404))["code"] == "NOT_FOUND"
    for path, query in (("/x", {}), ("/0", {}), ("", {"limit": 0}), ("", {"cursor": "0"}), ("", {"limit": 201})):
        await service.refused("GET", f"{JOBS}{path}", 422, **query)


@contextmanager
def elsewhere(service: Service) -> Iterator[httpx2.AsyncClient]:
    """A client on another machine."""
    transport = httpx2.ASGITransport(service.app, client=("10.0.0.7", 123))
    yield httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_an_anonymous_client_cannot_read_or_write_and_its_body_is_not_read(service: Service) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        raise AssertionError("it was read")

    with elsewhere(service) as anonymous:
        assert (await anonymous.get(JOBS)).status_code == 403
        refused = await anonymous.post(JOBS, content=body())
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")


READ_BY_POST = ("/search", "/search_knowledge")


def writing_routes(service: Service) -> list[tuple[str, str]]:
    """Return all writing routes except those of documents, which need a token: tests/unit/documents/http."""
    paths = service.app.openapi()["paths"]
    routes = [
        (method.upper(), path, operation["tags"])
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]
    methods = [(method, path) for method, path, tags in routes if "documents" not in tags]
    return [(method, path) for method, path in methods if method != "GET" and not path.endswith(READ_BY_POST)]


async def test_no_writing_route_is_open_to_anonymous_clients(service: Service) -> None:
    routes = writing_routes(service)
    assert {path for _, path in routes} >= {JOBS, "/api/v1/skills", "/api/v1/changes/{change_id}/approve"}
    with elsewhere(service) as anonymous:
        for method, path in routes:
            real = path.replace("{skill_id}", "some_skill")
            while "{" in real:
                real = f"{real[: real.index('{')]}1{real[real.index('}') + 1 :]}"
            assert (await anonymous.request(method, real, json={})).status_code == 403, (method, path)
