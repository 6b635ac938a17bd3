"""Nothing of another namespace shows: every operation of the catalog answers as if the neighbour did not exist.

Each operation is sent to two services, one with a neighbour and one without. Their answers must be equal, but for
times and for ids that are given out after the neighbour came.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.unit.tools.namespaces.builders import ALPHA, BETA, CANARY, MANAGE, READ, Client, Json, Service
from toolscript.server.openapi import ACCESS

pytestmark = pytest.mark.requirement("AP-005")

API = "/api/v1"
SKILL = "communication"
# Ids in the catalogs of the fixtures: default, alpha and beta have six items, two changes, and one of all else.
OF_ALPHA, OF_BETA, OF_NONE = 7, 13, 99
HELD, HELD_TOO, THEIR_CHANGE = 3, 4, 5
MINE, THEIRS, NOBODYS = 2, 3, 99

QUERIES = ("send an email", f"{CANARY} {CANARY}1", f"the {CANARY} keeping of amsel", "resize an image")
REVIEW = {"reviewer": "ann"}


def _searches() -> Iterator[Json]:
    for query in QUERIES:
        for strategy in ("hierarchical", "direct", "hybrid"):
            for search_type in ("hybrid", "semantic", "keyword"):
                options = {"strategy": strategy, "search_type": search_type, "preset": "recall", "limit": 50}
                yield {"query": query, **options, "explain": True}
    for about in (str(OF_BETA), f"{CANARY}haus__{CANARY}_mail", f"{CANARY}_file", str(OF_ALPHA)):
        yield {"query": QUERIES[0], "why_not": about}
    yield {"query": QUERIES[0], "namespaces": [ALPHA]}
    yield {"query": QUERIES[0], "namespaces": [BETA]}
    yield {"query": QUERIES[0], "namespaces": [ALPHA, BETA]}


SEARCHES = [*_searches()]
ALIAS_SEARCHES = [body for body in SEARCHES if "namespaces" not in body]
SKILL_SEARCHES: list[Json] = [
    {"query": query, "threshold": 0, "limit": 32, **more}
    for query in QUERIES
    for more in ({}, {"namespaces": [ALPHA]}, {"namespaces": [BETA]})
]


def _gets(path: str, *queries: str) -> list[tuple[str, Any]]:
    return [(f"{API}{path}{query}", None) for query in ("", *queries)]


PAGES = "?limit=1", f"?namespace={ALPHA}", f"?namespace={BETA}", "?namespace=unheard-of"


def _each(pattern: str, *ids: object, body: object = None) -> list[tuple[str, Any]]:
    return [(API + pattern.format(id_), body) for id_ in ids]


# For every operation of the catalog, the requests that the client of alpha sends. Reads first: writes change both.
CALLS: dict[str, list[tuple[str, Any]]] = {
    "GET /tools": _gets("/tools", *PAGES, f"?source={CANARY}-source", f"?server={CANARY}haus"),
    "GET /tools/{tool_id}": _each("/tools/{}", OF_ALPHA, OF_BETA, OF_NONE),
    "GET /tools/{tool_id}/skills": _each("/tools/{}/skills", OF_ALPHA, OF_BETA, OF_NONE),
    "GET /skills": _gets("/skills", *PAGES, "?limit=200"),
    "GET /skills/{skill_id}": _each("/skills/{}", SKILL, "file_operations", f"{CANARY}_keeping"),
    "GET /skills/{skill_id}/tools": _each("/skills/{}/tools", SKILL, "file_operations", f"{CANARY}_keeping"),
    "GET /suggestions": _gets("/suggestions", *PAGES, "?state=all"),
    "GET /suggestions/{suggestion_id}": _each("/suggestions/{}", MINE, THEIRS, NOBODYS),
    "GET /changes": _gets("/changes", *PAGES, "?state=held"),
    "GET /changes/{change_id}": _each("/changes/{}", HELD, THEIR_CHANGE, NOBODYS),
    "GET /curation": _gets("/curation", *PAGES),
    "GET /curation/{rule_id}": _each("/curation/{}", MINE, THEIRS, NOBODYS),
    "GET /tool_searches": _gets("/tool_searches", *PAGES, "?good_match=false", "?good_match=true"),
    "GET /tool_searches/gaps": _gets("/tool_searches/gaps", *PAGES),
    "GET /sources": _gets("/sources", *PAGES),
    "GET /sources/{name}": [
        *_each("/sources/{}", "amsel-source", f"{CANARY}-source", "none"),
        *_gets(f"/sources/{CANARY}-source", f"?namespace={BETA}", f"?namespace={ALPHA}"),
    ],
    "GET /jobs": _gets("/jobs", *PAGES),
    "GET /jobs/{job_id}": _each("/jobs/{}", MINE, THEIRS, NOBODYS),
    "GET /audit": _gets("/audit", *PAGES, "?limit=200"),
    "POST /tools/search": [(f"{API}/tools/search", body) for body in SEARCHES],
    "POST /skills/search": [(f"{API}/skills/search", body) for body in SKILL_SEARCHES],
    "POST /search": [(f"{API}/search", body) for body in ALIAS_SEARCHES],
    "GET /search/tools": _gets("/search/tools", *(f"?query={query}&threshold=0&limit=50" for query in QUERIES)),
    "GET /search/skills": _gets("/search/skills", *(f"?query={query}&threshold=0&limit=32" for query in QUERIES)),
    "PUT /tools/{tool_id}/skills": _each(
        "/tools/{}/skills", OF_BETA, OF_NONE, OF_ALPHA, body={"skill_ids": [SKILL], **REVIEW}
    ),
    "DELETE /tools/{tool_id}/skills": _each("/tools/{}/skills?reviewer=ann", OF_BETA, OF_NONE, OF_ALPHA),
    "POST /changes/{change_id}/approve": _each(
        "/changes/{}/approve", THEIR_CHANGE, NOBODYS, HELD, HELD, body=REVIEW
    ),
    "POST /changes/{change_id}/reject": _each(
        "/changes/{}/reject", THEIR_CHANGE, NOBODYS, HELD, HELD_TOO, body=REVIEW
    ),
    "PATCH /curation/{rule_id}": _each(
        "/curation/{}", THEIRS, NOBODYS, MINE, body={"words": "e-mails", "means": "letters", **REVIEW}
    ),
    "DELETE /curation/{rule_id}": _each("/curation/{}?reviewer=ann", THEIRS, NOBODYS, MINE, MINE),
    # After the others: without the neighbour, the new rule has the id of theirs.
    "POST /curation": [
        (f"{API}/curation{namespace}", {"kind": "never", "words": "email", "tool_id": tool_id, **REVIEW})
        for namespace in ("", f"?namespace={ALPHA}", f"?namespace={BETA}", "?namespace=unheard-of")
        for tool_id in (OF_BETA, OF_NONE, OF_ALPHA + 5)
    ],
    "DELETE /tools/{tool_id}": _each("/tools/{}", OF_BETA, OF_NONE, OF_ALPHA, OF_ALPHA),
    "DELETE /sources/{name}": [
        *_each("/sources/{}", f"{CANARY}-source", "amsel-source"),
        *_gets(f"/sources/{CANARY}-source", f"?namespace={BETA}", "?namespace=unheard-of"),
    ],
    "POST /jobs": [
        (f"{API}/jobs", {"source": f"{CANARY}-source", "items": [], "prune": True, **more})
        for more in ({}, {"namespace": ALPHA}, {"namespace": BETA}, {"namespace": "unheard-of"})
    ]
    + [(f"{API}/jobs", {"servers": [f"{CANARY}haus"]})],
    # For administrators alone: refused, whether what they name exists or not.
    "POST /skills": [(f"{API}/skills", {"id": f"{CANARY}_keeping", "name": "Mine"})],
    "PUT /skills/{skill_id}": _each("/skills/{}", SKILL, body={"name": "Mine"}),
    "PATCH /skills/{skill_id}": _each("/skills/{}", SKILL, body={"is_active": False}),
    "POST /suggestions/{suggestion_id}/approve": _each("/suggestions/{}/approve", THEIRS, MINE, body=REVIEW),
    "POST /suggestions/{suggestion_id}/reject": _each("/suggestions/{}/reject", THEIRS, MINE, body=REVIEW),
    "POST /suggestions/{suggestion_id}/merge": _each(
        "/suggestions/{}/merge", THEIRS, MINE, body={"into": SKILL, **REVIEW}
    ),
    "POST /suggestions/{suggestion_id}/undo": _each("/suggestions/{}/undo", THEIRS, MINE, body=REVIEW),
}
ADMIN_ONLY = {"POST /skills", "PUT /skills/{skill_id}", "PATCH /skills/{skill_id}"} | {
    f"POST /suggestions/{{suggestion_id}}/{decision}" for decision in ("approve", "reject", "merge", "undo")
}
# What two equal requests may answer differently: times and ids of requests, and ids that were given out later.
VOLATILE = {"took_ms", "stages_ms", "query_id", "at", "request_id"}
LATER_IDS = {"POST /jobs", "DELETE /sources/{name}", "POST /curation"}


async def test_every_operation_of_the_catalog_is_tested(shared: Service) -> None:
    described: Json = shared.app.openapi()["paths"]
    operations = {
        f"{method.upper()} {path.removeprefix(API)}"
        for path, methods in described.items()
        for method, operation in methods.items()
        if operation["tags"][0] in ACCESS.keys() - {"tenants", "knowledge"}
    }
    assert operations == CALLS.keys()


@pytest.mark.parametrize("operation", CALLS)
async def test_an_answer_is_the_same_with_and_without_a_neighbour(
    operation: str, shared: Service, alone: Service
) -> None:
    await compare(operation, shared, alone)


async def compare(operation: str, shared: Service, alone: Service) -> None:
    """Send all requests of an operation to both services, and compare the answers."""
    method = operation.partition(" ")[0]
    answered = 0
    for path, body in CALLS[operation]:
        with_neighbour = await _manager(shared).ask(method, path, body)
        without = await _manager(alone).ask(method, path, body)
        assert _comparable(operation, with_neighbour) == _comparable(operation, without), path
        assert CANARY not in with_neighbour.text or CANARY in f"{path}{body}", path
        answered += with_neighbour.is_success
        if path.startswith(f"{API}/jobs") and with_neighbour.is_success:
            await _settled(shared, alone)
    assert bool(answered) is (operation not in ADMIN_ONLY)


def _manager(service: Service) -> Client:
    return service.client(ALPHA, MANAGE)


async def _settled(*services: Service) -> None:
    for service in services:
        for job in (await service.admin.got(f"{API}/jobs"))["results"]:
            await service.admin.until_over(job["id"])


def _comparable(operation: str, answer: httpx2.Response) -> tuple[int, object, dict[str, str]]:
    body = _stable(answer.json()) if answer.content else None
    if operation in LATER_IDS and isinstance(body, dict):
        body.pop("id", None)
    if operation == "GET /audit" and isinstance(body, dict):
        # Ids are of one sequence; who sees that others write learns nothing of what.
        body["results"] = [
            {name: part for name, part in entry.items() if name != "id"} for entry in body.get("results", [])
        ]
        body["next_cursor"] = bool(body.get("next_cursor"))
    kept = ("www-authenticate", "x-toolscript-degraded", "retry-after", "ratelimit-remaining")
    return answer.status_code, body, {name: answer.headers[name] for name in kept if name in answer.headers}


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stable(part) for name, part in value.items() if not _is_volatile(name)}
    return [_stable(part) for part in value] if isinstance(value, list) else value


def _is_volatile(name: str) -> bool:
    return name in VOLATILE or name.endswith(("_at", "_time_ms"))


async def test_the_catalog_of_the_neighbour_is_untouched_by_all_of_this(shared: Service) -> None:
    await require_untouched(shared)


async def require_untouched(shared: Service) -> None:
    """Require that what was planted in beta is still as it was."""
    neighbour = shared.client(BETA, MANAGE)
    tools = (await neighbour.got(f"{API}/tools"))["results"]
    assert [tool["id"] for tool in tools] == list(range(OF_BETA, OF_BETA + 6))
    assert {change["state"] for change in (await neighbour.got(f"{API}/changes"))["results"]} == {"held"}
    assert (await neighbour.got(f"{API}/suggestions/{THEIRS}"))["state"] == "pending"
    assert (await neighbour.got(f"{API}/tools/{OF_BETA + 1}/skills"))["skills"][0]["reason"].endswith("reviewer")
    assert [job["source"] for job in (await neighbour.got(f"{API}/jobs"))["results"]] == [f"{CANARY}-job"]
    searches = (await neighbour.got(f"{API}/tool_searches"))["results"]
    assert [search["text"] for search in searches] == [f"email the {CANARY}"]
    assert [rule["means"] for rule in (await neighbour.got(f"{API}/curation"))["results"]] == [f"{CANARY} letter"]


MCP_CALLS: list[tuple[str, Json]] = [
    *(("search_tools", {"query": query, "threshold": 0, "limit": 20, "detail": "schema"}) for query in QUERIES),
    ("search_tools", {"query": QUERIES[0], "namespaces": [ALPHA]}),
    ("search_tools", {"query": QUERIES[0], "namespaces": [BETA]}),
    ("search_tools", {"query": QUERIES[0], "namespaces": ["unheard-of"]}),
    ("search_tools", {"query": QUERIES[0], "namespaces": ["NOT A NAME"]}),
    ("describe_tool", {"ids": [OF_ALPHA + 1, OF_BETA, OF_NONE]}),
    ("describe_tool", {"id": OF_BETA}),
    ("describe_tool", {"id": OF_NONE}),
    ("list_skills", {"limit": 100}),
]


@pytest.mark.parametrize("scope", [READ, None])
@pytest.mark.parametrize(("tool", "arguments"), MCP_CALLS)
async def test_an_mcp_tool_answers_the_same_with_and_without_a_neighbour(
    tool: str, arguments: Json, scope: str | None, shared: Service, alone: Service
) -> None:
    await compare_mcp(tool, arguments, scope, shared, alone)


async def compare_mcp(tool: str, arguments: Json, scope: str | None, shared: Service, alone: Service) -> None:
    answers = [await service.client([ALPHA], scope).mcp.answer(tool, arguments) for service in (shared, alone)]
    assert answers[0] == answers[1]
    assert CANARY not in json.dumps(answers[0]) or CANARY in json.dumps(arguments)
