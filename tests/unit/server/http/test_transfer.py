"""How answers go out: packed where they are large and the client takes that, and without a body for HEAD."""

from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from tests.unit.conftest import Api
from toolscript.core.web.transfer import PACKED_BYTES, AnswersHead, Packed

pytestmark = pytest.mark.requirement("API-003")

LARGE = {"results": ["a tool that reads a file"] * (PACKED_BYTES // 20)}


async def large(_: Any) -> JSONResponse:
    return JSONResponse(LARGE, headers={"vary": "origin"})


async def small(_: Any) -> JSONResponse:
    return JSONResponse({})


async def parts(_: Any) -> StreamingResponse:
    return StreamingResponse(iter(["[1", ",2]" + " " * PACKED_BYTES]), media_type="application/json")


async def text(_: Any) -> PlainTextResponse:
    return PlainTextResponse("x" * PACKED_BYTES)


def client() -> httpx2.AsyncClient:
    routes = [Route(f"/{answer.__name__}", answer) for answer in (large, small, parts, text)]
    app = Starlette(routes=routes, middleware=[Middleware(AnswersHead), Middleware(Packed)])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x")


async def test_a_large_answer_is_packed_for_a_client_that_takes_it() -> None:
    async with client() as http:
        answer = await http.get("/large", headers={"accept-encoding": "br, gzip"})
        plain = await http.get("/large", headers={"accept-encoding": "identity"})
    assert answer.json() == plain.json() == LARGE
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == ("gzip", "origin, accept-encoding")
    assert int(answer.headers["content-length"]) < PACKED_BYTES / 4
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("accepts", ["gzip;q=0", "*;q=0", "br"])
async def test_what_a_client_refuses_is_not_sent(accepts: str) -> None:
    async with client() as http:
        answer = await http.get("/large", headers={"accept-encoding": accepts})
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("path", ["/small", "/parts", "/text"])
async def test_what_is_small_or_sent_in_parts_or_no_json_goes_out_as_it_is(path: str) -> None:
    async with client() as http:
        answer = await http.get(path, headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    assert "content-encoding" not in answer.headers


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    async with client() as http:
        head, got = await http.head("/large"), await http.get("/large")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize(("path", "status"), [("/livez", 200), ("/api/v1/tools", 200), ("/nowhere", 404)])
async def test_what_answers_get_answers_head(api: Api, path: str, status: int) -> None:
    head = await api.client.head(path)
    assert (head.status_code, head.content) == (status, b"")
    assert head.headers["x-request-id"]


async def test_head_begins_no_stream() -> None:
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["method"])

    answering: Any = AnswersHead(app, {"/stream"})
    for path in ("/stream", "/large"):
        await answering({"type": "http", "method": "HEAD", "path": path}, None, None)
    assert seen == ["HEAD", "GET"]
