"""Both clients with an unreachable service, another server, or a refusal."""

import asyncio
import inspect
import json
import socket
import sys
import tempfile
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.client.both_clients import METHODS, Ask, ask_async, ask_sync, other_server, raw_server
from tests.unit.gateway.runtime.serving import serving
from toolscript.client.clients import AsyncClient, Client
from toolscript.client.exchange import SERVER
from toolscript.client.records import Record
from toolscript.client.resource import Resource, listing, operation
from toolscript.core.errors import (
    BlankQuery,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PlanExceeded,
    Rejected,
    ServerRejected,
    ServerUnavailable,
    SetupError,
    ToolscriptError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    envelope,
)
from toolscript.tools.model.answer import Timings, ToolAnswer
from toolscript.tools.schemas.search import ToolSearchAnswer

pytestmark = [pytest.mark.requirement("AP-002"), pytest.mark.slow]

EMPTY = json.loads(ToolSearchAnswer.of(ToolAnswer("x", (), 0, "hybrid", Timings()), "1").model_dump_json())
BROKEN_LISTS: list[object] = [None, {}, [3], [{}]]
COUNTS = b'{"counts": {"created": 1}}'
CREATED = b'{"id": "a", "state": "created", "chunk_count": 2, "line": 1}\n'


@pytest.fixture(params=[ask_sync, ask_async])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Run the test with a client of threads, then with one of asyncio."""
    chosen: Ask = request.param
    return chosen


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost", "http://", "http://localhost:99999"])
def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(InvalidRequest, match="not the address of a server"):
            client(url)


OTHER_ANSWERS: list[bytes] = [
    *(b"", b"<html>welcome</html>", b"3", b"null", b"{}", b"\xff", b"[" * 99999, b'[{"id": 3}]', b'"text"'),
    *(json.dumps({**EMPTY, "results": broken}).encode() for broken in BROKEN_LISTS),
    json.dumps({**EMPTY, "metadata": {}}).encode(),
    json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "search_type": 3}}).encode(),
    json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "degraded": "skills"}}).encode(),
]


async def test_another_server_is_not_mistaken_for_ours(ask: Ask, subtests: pytest.Subtests) -> None:
    for body in OTHER_ANSWERS:
        with subtests.test(body=body):
            async with serving(other_server(body)) as url:
                with pytest.raises(Unavailable, match="is not a server, or it runs another version") as refused:
                    await ask(url, "tools.search", "x", options={"retries": 9})
                for path in ("skills.list", "documents.list"):
                    with pytest.raises(Unavailable, match="is not a server"):
                        await ask(url, path)
            assert "toolscript serve" in refused.value.hint


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b"3", b'{"id": "a"}\n' + COUNTS, CREATED + b"7", b'{"state": "eaten"}\n' + COUNTS),
        b'{"counts": {}, "error": 7}',
    ],
)
async def test_a_server_without_document_routes_is_not_ours(body: bytes, ask: Ask) -> None:
    async with serving(other_server(body)) as url:
        with pytest.raises(Unavailable, match="is not a server"):
            await ask(url, "documents.put", [{}])


async def test_unknown_fields_of_an_answer_are_kept(ask: Ask) -> None:
    async with serving(other_server(json.dumps({**EMPTY, "new": 1}).encode())) as url:
        answer = await ask(url, "tools.search", "x")
    assert (answer.results, answer.new, answer.to_json()) == ([], 1, {**EMPTY, "new": 1})


async def test_an_answer_is_frozen_and_readable(ask: Ask) -> None:
    async with serving(other_server(json.dumps(EMPTY).encode())) as url:
        answer = await ask(url, "tools.search", "x")
        assert answer == await ask(url, "tools.search", "x")
    with pytest.raises(AttributeError):
        answer.query_id = "2"
    assert repr(answer).startswith("ToolSearchAnswer(query_id='1', results=[], steps=[], metadata=")


REFUSALS: list[tuple[int, str, dict[str, object], type[ToolscriptError]]] = [
    (400, "VALIDATION_ERROR", {}, BlankQuery),
    (401, "UNAUTHORIZED", {}, Unauthorized),
    (403, "FORBIDDEN", {}, Forbidden),
    (403, "PLAN_EXCEEDED", {}, PlanExceeded),
    (404, "NOT_FOUND", {}, NotFound),
    (405, "METHOD_NOT_ALLOWED", {}, InvalidRequest),
    (409, "CONFLICT", {}, Conflict),
    (413, "TOO_LARGE", {}, InvalidRequest),
    (422, "VALIDATION_ERROR", {}, InvalidRequest),
    (429, "RATE_LIMITED", {}, TooManyRequests),
    (500, "INTERNAL_ERROR", {}, Rejected),
    (502, "UNAVAILABLE", {}, ServerRejected),
    (503, "UNAVAILABLE", {}, Unavailable),
    (503, "UNAVAILABLE", {"server": "files"}, ServerUnavailable),
    (503, "UNAVAILABLE", {"retryable": False}, SetupError),
    (418, "OF_TOMORROW", {}, InvalidRequest),
    (404, "OF_TOMORROW", {}, NotFound),
    (599, "OF_TOMORROW", {}, Unavailable),
]


async def test_a_refusal_is_the_error_of_its_code(ask: Ask, subtests: pytest.Subtests) -> None:
    for status, code, details, kind in REFUSALS:
        with subtests.test(status=status, code=code, details=details, kind=kind):
            body = json.dumps(envelope(code, "not today", {"hint": "come tomorrow", **details})).encode()
            async with serving(other_server(body, status, {"X-Request-Id": "abc123"})) as url:
                with pytest.raises(ToolscriptError, match=r"^not today$") as refused:
                    await ask(url, "tools.search", "x")
            error = refused.value
            assert type(error) is kind
            assert (error.code, error.hint, error.details) == (code, "come tomorrow", details)
            assert error.request_id == "abc123"


async def test_an_internal_error_has_the_request_id_of_the_log(ask: Ask) -> None:
    body = json.dumps(envelope("INTERNAL_ERROR", "our fault")).encode()
    async with serving(other_server(body, 500, {"X-Request-Id": "abc123"})) as url:
        with pytest.raises(Rejected) as refused:
            await ask(url, "tools.search", "x")
    assert "abc123" in refused.value.hint


@pytest.mark.parametrize("status", [404, 500, 502])
async def test_an_error_in_another_schema_is_not_ours(status: int, ask: Ask) -> None:
    async with serving(other_server(b"<html>no</html>", status)) as url:
        with pytest.raises(Unavailable, match="is not a server"):
            await ask(url, "tools.search", "x")


@pytest.mark.parametrize("name", ["a/b c?d#e%2F", "..", ".", "ü", "a\udce9", "a%2Fb"])
async def test_an_id_is_one_step_of_a_path_below_that_of_the_server(name: str, ask: Ask) -> None:
    async def echo(request: Request) -> Response:
        text = f"{request.scope['raw_path'].decode()} {request.headers['authorization']}"
        answer = {"id": "a", "text": text, "metadata": {}, "chunks": [], "updated_at": ""}
        return Response(json.dumps(answer))

    async with serving(Starlette(routes=[Route("/{path:path}", echo)])) as url:
        answer = await ask(f"{url}/below/", "documents.get", name, options={"token": "t"})
    path, _, token = answer.text.partition(" ")
    assert token == "Bearer t"
    step = path.removeprefix("/below/api/v1/documents/")
    assert step != path
    assert not set(step) & set("/? #")
    assert step not in (".", "..")


async def test_an_unreachable_server_is_unavailable_and_the_password_is_hidden(ask: Ask) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"the server at 127.0.0.1:{port} does not answer") as refused:
            await ask(f"http://me:hunter2@127.0.0.1:{port}", "tools.search", "x")
    assert "hunter2" not in refused.value.message
    assert refused.value.hint == SERVER.hint


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".com", "double..dot"])
async def test_an_unresolvable_name_is_unavailable(host: str, ask: Ask) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        await ask(f"http://{host}:1", "tools.search", "x")


async def test_a_server_that_closes_the_connection_is_unavailable(ask: Ask) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with raw_server(hang_up) as url:
        with pytest.raises(Unavailable, match="does not answer"):
            await ask(url, "tools.search", "x")


@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
async def test_a_unix_socket_is_an_address(ask: Ask) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.sock"
        config = uvicorn.Config(other_server(json.dumps(EMPTY).encode()), uds=str(path), log_config=None)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        # Nothing listens until the server has started.
        answer = await ask(f"unix:{path}", "tools.search", "x", options={"retries": 9})
        server.should_exit = True
        await running
    assert answer.query_id == "1"


async def test_a_client_goes_on_after_the_server_has_closed_an_idle_connection() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request with keep-alive, and close the connection all the same."""
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"results": [], "next_cursor": None}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    async with raw_server(once) as url:

        def ask_twice() -> list[object]:
            with Client(url, retries=0) as client:
                return [*client.skills.list(), *client.skills.list(), *client.skills.list()]

        assert await asyncio.to_thread(ask_twice) == []


async def test_what_is_none_is_not_sent_and_lists_repeat_their_name(ask: Ask) -> None:
    queries = []

    async def answer(request: Request) -> Response:
        queries.append(request.url.query)
        return Response(json.dumps({"results": [], "next_cursor": None}))

    async with serving(Starlette(routes=[Route("/{path:path}", answer, methods=METHODS)])) as url:
        await ask(url, "tools.list", server=["a", "b c"], include_schemas=True, page_size=7)
        await ask(url, "tools.list")
    assert queries == ["limit=7&server=a&server=b+c&include_schemas=true", ""]


async def test_a_server_that_repeats_its_cursor_does_not_loop_forever(ask: Ask) -> None:
    async with serving(other_server(b'{"results": [], "next_cursor": "again"}')) as url:
        with pytest.raises(Unavailable, match="is not a server"):
            await ask(url, "skills.list")


def test_the_token_of_the_environment_is_not_sent_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_TOKEN", "secret")
    monkeypatch.setenv("TOOLSCRIPT_SERVICE_URL", "http://127.0.0.1:1234")
    assert Client("http://127.0.0.1:1")._sender._token == ""
    assert Client("http://127.0.0.1:1", token="mine")._sender._token == "mine"
    usual = Client()
    assert (usual.url, usual._sender._token) == ("http://127.0.0.1:1234", "secret")


def test_every_method_has_a_docstring_and_both_clients_have_the_same_resources() -> None:
    sync, async_ = Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")
    resources = {name for name in dir(sync) if isinstance(getattr(sync, name), Resource)}
    assert resources == {name for name in dir(async_) if isinstance(getattr(async_, name), Resource)}
    assert len(resources) == 15
    for name in resources:
        methods = {
            method: value
            for method, value in vars(type(getattr(sync, name))).items()
            if isinstance(value, operation | listing)
        }
        assert methods
        for method in methods:
            assert inspect.getdoc(getattr(getattr(sync, name), method)), f"{name}.{method}"


def test_a_record_without_a_field_cannot_be_read() -> None:
    class Pair(Record):
        left: int
        right: str | None = None

    assert Pair.from_json({"left": 1}).right is None
    others: list[object] = [{}, {"left": "1"}, {"left": True}, {"left": 1, "right": 2}, [], None]
    for data in others:
        with pytest.raises(ValueError, match=r"."):
            Pair.from_json(data)
