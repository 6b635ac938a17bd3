"""The documents client with another server, a refusal, or a service that stops in the middle."""

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.gateway.runtime.serving import serving
from toolscript.client.documents import DocumentsClient, PutAnswer
from toolscript.core.errors import (
    InvalidRequest,
    SetupError,
    ToolscriptError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    envelope,
)
from toolscript.documents.model.document import PutOutcome, PutResult

pytestmark = pytest.mark.slow

COUNTS = b'{"counts": {"created": 1}}'
CREATED = b'{"id": "a", "state": "created", "chunks": 2, "line": 1}\n'


def other_server(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status, headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "PUT", "DELETE"])])


async def ask(url: str, method: str, *arguments: Any) -> Any:
    return await asyncio.to_thread(getattr(DocumentsClient(url, token="t"), method), *arguments)


@pytest.mark.parametrize("body", [b"", b"<html>", b"3", b"null", b"[]", b"{}", b"\xff", b"[" * 99_999])
async def test_another_server_is_not_mistaken_for_a_service(body: bytes) -> None:
    async with serving(other_server(body)) as url:
        for method, argument in (("search", {"query": "x"}), ("document", "a"), ("remove", ["a"])):
            with pytest.raises(Unavailable, match="is not a service, or it runs another version"):
                await ask(url, method, argument)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b"3", b'{"id": "a"}\n' + COUNTS, CREATED + b"7", b'{"state": "eaten"}\n' + COUNTS),
        CREATED.replace(b"created", b"eaten") + COUNTS,
        b'{"counts": {}, "error": 7}',
    ],
)
async def test_a_server_without_document_routes_is_no_service(body: bytes) -> None:
    async with serving(other_server(body)) as url:
        with pytest.raises(Unavailable, match="is not a service"):
            await ask(url, "put", [b"{}"])


async def test_every_line_has_its_result_and_the_reason_of_a_stop() -> None:
    async with serving(other_server(CREATED + COUNTS)) as url:
        expected = {1: PutResult("a", PutOutcome.CREATED, 2)}
        assert await ask(url, "put", [b"{}"]) == PutAnswer(expected)
    refused = b'{"id": null, "state": "refused", "chunks": 0, "line": 2, "error": "no"}\n'
    error = envelope("UNAVAILABLE", "the index is away", {"hint": "wait"})["error"]
    body = CREATED + refused + json.dumps({"counts": {}, "error": error}).encode()
    async with serving(other_server(body)) as url:
        answer = await ask(url, "put", [b"{}", b"{}", b"{}"])
    assert answer.results == {**expected, 2: PutResult("", PutOutcome.REFUSED, problem="no")}
    assert (answer.stopped.message, answer.stopped.hint) == ("the index is away", "wait")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Unauthorized), (415, InvalidRequest), (429, TooManyRequests), (503, Unavailable)],
)
async def test_a_refusal_is_an_error_with_how_long_to_wait(status: int, kind: type[ToolscriptError]) -> None:
    body = json.dumps(envelope("SOME_CODE", "not now")).encode()
    for header, expected in (("17", {"retry_after_seconds": 17}), ("soon", {}), ("9" * 9, {})):
        async with serving(other_server(body, status, {"Retry-After": header})) as url:
            with pytest.raises(kind, match=f"the service answered {status} SOME_CODE: not now") as refused:
                await ask(url, "put", [b"{}"])
        assert refused.value.details == expected


@pytest.mark.parametrize("name", ["a/b c?d#e%2F", "..", ".", "ü", "a\udce9"])
async def test_an_id_is_one_step_of_a_path(name: str) -> None:
    async def echo(request: Request) -> Response:
        response = {"text": request.scope["raw_path"].decode(), "token": request.headers["authorization"]}
        return Response(json.dumps(response))

    async with serving(Starlette(routes=[Route("/{path:path}", echo)])) as url:
        answer = await ask(f"{url}/below", "document", name)
    assert answer["token"] == "Bearer t"
    assert answer["text"].startswith("/below/api/v1/documents/")
    step = answer["text"].removeprefix("/below/api/v1/documents/")
    assert not set(step) & set("/? #")
    assert step not in (".", "..")


@pytest.mark.parametrize(("details", "kind"), [({"retryable": False}, SetupError), ({}, Unavailable)])
async def test_a_fault_that_waiting_does_not_change_is_not_unavailability(
    details: dict[str, object], kind: type[ToolscriptError]
) -> None:
    body = json.dumps(envelope("UNAVAILABLE", "documents are not set up here", details)).encode()
    async with serving(other_server(body, 503)) as url:
        with pytest.raises(kind, match="documents are not set up here"):
            await ask(url, "put", [b"{}"])
