"""A service at capacity: which requests it rejects, how, and which never."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Message, Scope

from toolscript.core.web.admission import Admission, Admitted, Kind, Limits, kind_of
from toolscript.core.web.request_context import RequestContext

pytestmark = pytest.mark.requirement("API-004", "OP-006")
SEARCH, WRITE = ("POST", "/api/v1/search"), ("POST", "/api/v1/documents/delete")


@dataclass
class Busy:
    """App whose requests end when `go_on` is set."""

    admission: Admission
    release: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    under_way: set[asyncio.Future[httpx2.Response]] = field(default_factory=set)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE"])
        async def work(request: Request) -> dict[str, int]:
            read = len(await request.body())
            self.arrived.release()
            await self.release.wait()
            return {"read": read}

        app.add_middleware(Admitted, admission=self.admission)
        app.add_middleware(RequestContext)
        return app

    async def until_one_waits(self) -> None:
        async with asyncio.timeout(10):
            while not self.admission.gates[Kind.READ].waiting:  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def begin(self, client: httpx2.AsyncClient, method: str, path: str) -> None:
        """Send a request and wait until the app handles it."""
        response = asyncio.ensure_future(client.request(method, path, content=None if method == "GET" else b"{}"))
        self.under_way.add(response)
        await asyncio.wait_for(self.arrived.acquire(), 10)


@asynccontextmanager
async def busy(wait: float = 0.0) -> AsyncIterator[tuple[Busy, httpx2.AsyncClient]]:
    """One search, one write and one request of management at a time."""
    scene = Busy(Admission(Limits(1, wait), Limits(1, wait), Limits(1, wait)))
    transport = httpx2.ASGITransport(scene.app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield scene, client
        scene.release.set()
        assert {(await response).status_code for response in scene.under_way} <= {200}
    assert [gate.running for gate in scene.admission.gates.values()] == [0, 0, 0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        SEARCH,
        ("POST", "/api/v1/tools/search"),
        ("POST", "/api/v1/skills/search"),
        ("POST", "/api/v1/documents/search"),
        ("GET", "/api/v1/search/tools"),
        ("POST", "/search"),
        ("POST", "/search_knowledge"),
    ],
)
async def test_a_search_beyond_capacity_is_refused_with_503_and_when_to_try_again(method: str, path: str) -> None:
    async with busy() as (scene, client):
        await scene.begin(client, *SEARCH)
        refused = await client.request(method, path, content=b"{}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "UNAVAILABLE")
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["details"]["hint"] == "try again in 1 second"
    assert refused.headers["x-request-id"]


async def test_over_mcp_the_refusal_is_an_error_of_the_protocol_as_well() -> None:
    async with busy() as (scene, client):
        await scene.begin(client, *SEARCH)
        refused = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert (refused.json()["jsonrpc"], refused.json()["error"]["code"]) == ("2.0", 503)
    assert refused.json()["error"]["data"]["error"]["code"] == "UNAVAILABLE"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/search/health", "/metrics"])
async def test_health_and_metrics_are_never_refused(path: str) -> None:
    async with busy() as (scene, client):
        await scene.begin(client, *SEARCH)
        await scene.begin(client, *WRITE)
        await scene.begin(client, "GET", path)


async def test_writes_do_not_take_the_places_of_searches_nor_searches_those_of_writes() -> None:
    async with busy() as (scene, client):
        await scene.begin(client, *SEARCH)
        await scene.begin(client, *WRITE)
        assert (await client.request(*WRITE, content=b"{}")).status_code == 503
        assert (await client.post("/api/v1/search", content=b"{}")).status_code == 503


async def test_administration_gets_through_when_searches_and_writes_are_refused() -> None:
    async with busy() as (scene, client):
        await scene.begin(client, *SEARCH)
        await scene.begin(client, *WRITE)
        assert (await client.request(*SEARCH, content=b"{}")).status_code == 503
        await scene.begin(client, "POST", "/api/v1/suggestions/7/approve")
        assert (await client.get("/api/v1/audit")).status_code == 503


async def test_a_waiting_request_is_answered_later_with_its_body() -> None:
    async with busy(wait=60.0) as (scene, client):
        await scene.begin(client, *SEARCH)
        second = asyncio.ensure_future(client.post("/api/v1/search", content=b"{} "))
        await scene.until_one_waits()
        scene.release.set()
        assert (await second).json() == {"read": 3}


async def test_a_client_that_leaves_while_it_waits_is_dropped() -> None:
    async with busy(wait=60.0) as (scene, client):
        await scene.begin(client, *SEARCH)
        has_left = asyncio.Event()
        sent: list[Message] = []
        body: list[Message] = [{"type": "http.request", "body": b"{}", "more_body": False}]

        async def receive() -> Message:
            if body:
                return body.pop()
            await has_left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": SEARCH[1],
            "headers": [(b"content-length", b"2")],
        }
        scope.update(query_string=b"", root_path="", scheme="http", server=("127.0.0.1", 80))
        response = asyncio.ensure_future(scene.app()(scope, receive, send))
        await scene.until_one_waits()
        has_left.set()
        await asyncio.wait_for(response, 10)
        assert scene.admission.gates[Kind.READ].waiting == 0
        assert sent[0]["status"] == 499
        assert scene.arrived.locked(), "nothing was done for it"


GATES: list[tuple[str, str, Kind | None]] = [
    (*SEARCH, Kind.READ),
    (*WRITE, Kind.WRITE),
    ("GET", "/documents/a", Kind.READ),
    ("DELETE", "/documents", Kind.WRITE),
    ("PUT", "/documents", None),
    ("GET", "/livez", None),
    ("POST", "/api/v1/documents/search", Kind.READ),
    ("POST", "/api/v1/tools/search", Kind.READ),
    ("POST", "/api/v1/knowledge/search", Kind.READ),
    ("POST", "/search_knowledge", Kind.READ),
    ("POST", "/mcp", Kind.READ),
    ("PUT", "/api/v1/documents", None),
    ("GET", "/api/v1/documents", Kind.READ),
    ("GET", "/api/v1/tenants", Kind.MANAGE),
    ("GET", "/api/v1/skills/mail/tools", Kind.MANAGE),
    ("POST", "/api/v1/skills", Kind.MANAGE),
    ("GET", "/api/v1/skills", Kind.READ),
    ("POST", "/api/v1/suggestions/7/approve", Kind.MANAGE),
    ("POST", "/api/v1/skills/search", Kind.READ),
    ("GET", "/api/v1/sourcesandmore", Kind.READ),
    # The id of a document may look like a search.
    ("DELETE", "/api/v1/documents/search", Kind.WRITE),
    ("DELETE", "/documents/a/search", Kind.WRITE),
]


def test_one_table_assigns_requests_to_gates(subtests: pytest.Subtests) -> None:
    for method, path, kind in GATES:
        with subtests.test(method=method, path=path, kind=kind):
            assert kind_of(method, path) is kind
