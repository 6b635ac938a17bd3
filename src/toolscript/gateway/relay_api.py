"""Requests of clients in other processes, with the way back to them: a stream of events, and answers posted to it.

`toolscript mcp` sends what its client asks for. The answer is a stream of JSON lines: the id of the stream, then
progress, log messages and questions as they come, and the result or error at last. A client that closes the stream
cancels its request.
"""

import asyncio
import json
import secrets
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolscript.core.errors import (
    ERROR_TABLE,
    InvalidRequest,
    NotFound,
    Overloaded,
    ServerRejected,
    ToolscriptError,
    envelope_of,
)
from toolscript.core.items import JsonObject
from toolscript.core.mcp.arguments import one_of, text, texts, wrong
from toolscript.core.mcp_client.relay import LOG_LEVELS, relayed_to
from toolscript.gateway.api import count_in, json_object, terms_of
from toolscript.gateway.callers import on_terms
from toolscript.gateway.json import call_to_json
from toolscript.gateway.model import COMPLETE, GET_PROMPT, LISTS, PAGE, READ_RESOURCE, Change, Gateway
from toolscript.gateway.relay_paths import (
    ANSWERS,
    ASK,
    CALL,
    CHANGE,
    ENTRIES_PATH,
    ERROR,
    HEARTBEAT_SECONDS,
    ID,
    LOG,
    MAX_EVENTS,
    PROGRESS,
    REQUESTS_PATH,
    RESULT,
    STATUS,
    WATCH_PATH,
)
from toolscript.gateway.streams import cancel_on_disconnect

METHODS = (CALL, GET_PROMPT, READ_RESOURCE, COMPLETE)
MAX_OPEN = 1_000
MAX_PAGE = 1_000
MAX_WATCHED = 1_000
_AS_OBJECT = "send a JSON object"


class RemoteRelay:
    """Implements `Relay`, for a client in another process. Events wait here until they are sent."""

    def __init__(self, told: JsonObject) -> None:
        capabilities = told.get("capabilities", {})
        if not isinstance(capabilities, Mapping):
            raise InvalidRequest("capabilities must be a JSON object", details={"field": "relay"})
        self.client = text(told, "client")
        self.capabilities: JsonObject = capabilities
        self.log_level = one_of(told, "log_level", LOG_LEVELS) if told.get("log_level") else ""
        self.wants_progress = told.get("wants_progress") is True
        self.events: asyncio.Queue[JsonObject] = asyncio.Queue(MAX_EVENTS)
        self._questions: dict[int, asyncio.Future[Mapping[str, JsonObject]]] = {}
        self._asked = 0

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._put({PROGRESS: [progress, total, message]})

    async def on_log(self, params: JsonObject) -> None:
        self._put({LOG: params})

    def tell(self, change: Change) -> None:
        """Note a change. One that finds no room is not lost: the same one is there already, or many are."""
        self._put({CHANGE: [change.list, change.uri]})

    def _put(self, event: JsonObject) -> None:
        """Note an event; one that finds no room is dropped, for the client may have stopped to read."""
        with suppress(asyncio.QueueFull):
            self.events.put_nowait(event)

    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[Mapping[str, JsonObject]] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        try:
            await self.events.put({ASK: {"number": number, "questions": questions}})
            return await answer
        finally:
            del self._questions[number]

    def answered(self, number: int, body: JsonObject) -> None:
        """Take what the client answers; raise NotFound if nothing is asked under this number any more."""
        answer = self._questions.get(number)
        if answer is None or answer.done():
            raise NotFound("nothing is asked here any more")
        error, answers = body.get(ERROR), body.get(ANSWERS)
        if isinstance(error, Mapping):
            code = error.get("code")
            details = {"code": code} if isinstance(code, int) else {}
            answer.set_exception(ServerRejected(str(error.get("message", ""))[:2_000], details=details))
        elif isinstance(answers, Mapping):
            answer.set_result(answers)
        else:
            raise InvalidRequest("send `answers` or `error`")


def relay_routes(gateway: Gateway) -> list[Route]:
    return _Relayed(gateway).routes()


class _Relayed:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._streams: dict[str, RemoteRelay] = {}

    def routes(self) -> list[Route]:
        return [
            Route(f"{ENTRIES_PATH}/{{kind}}", self._list_entries, methods=["GET"]),
            Route(REQUESTS_PATH, self._send, methods=["POST"]),
            Route(WATCH_PATH, self._watch, methods=["POST"]),
            Route(f"{REQUESTS_PATH}/{{id}}/{{number:int}}", self._take_answer, methods=["POST"]),
        ]

    async def _list_entries(self, request: Request) -> Response:
        kind = one_of(request.path_params, "kind", LISTS)
        limit = count_in(request, "limit", PAGE, MAX_PAGE)
        page = await self._gateway.entries(kind, request.query_params.get("cursor", ""), limit)
        return JSONResponse({"entries": list(page.entries), "next_cursor": page.next_cursor})

    async def _send(self, request: Request) -> Response:
        body = json_object(await request.body(), _AS_OBJECT)
        method, params = one_of(body, "method", METHODS), _object(body, "params", {})
        relay = RemoteRelay(_object(body, "relay", {"client": "nobody"}))
        terms = terms_of(str(params.get("name", "")), confirms=body.get("confirm") is True, given=body)

        async def answer() -> JsonObject:
            with on_terms(terms), relayed_to(relay if "relay" in body else None):
                return await _answer(self._gateway, method, params)

        return self._stream(relay, answer())

    async def _watch(self, request: Request) -> Response:
        """Send changes as they come. The stream has no end of its own."""
        body = json_object(await request.body(), _AS_OBJECT)
        uris = texts(body, "uris", MAX_WATCHED) if body.get("uris") else []
        relay = RemoteRelay({"client": "watching"})

        async def answer() -> JsonObject:
            await self._gateway.watch(uris, relay.tell)
            return {}

        return self._stream(relay, answer())

    async def _take_answer(self, request: Request) -> Response:
        relay = self._streams.get(request.path_params["id"])
        if relay is None:
            raise NotFound("this request is not open any more")
        relay.answered(request.path_params["number"], json_object(await request.body(), _AS_OBJECT))
        return JSONResponse({})

    def _stream(self, relay: RemoteRelay, answer: Coroutine[Any, Any, JsonObject]) -> Response:
        if len(self._streams) >= MAX_OPEN:
            answer.close()
            raise Overloaded(f"{MAX_OPEN} requests are open at once", hint="try again in a moment")
        return _EventStream(relay, self._streams, answer)


def _object(body: JsonObject, name: str, default: JsonObject) -> JsonObject:
    value = body.get(name, default)
    if not isinstance(value, dict):
        raise wrong(name, "must be a JSON object")
    return value


async def _answer(gateway: Gateway, method: str, params: JsonObject) -> JsonObject:
    if method != CALL:
        return await gateway.request(method, params)
    arguments = params.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise InvalidRequest("arguments must be a JSON object", details={"field": "arguments"})
    return call_to_json(await gateway.call(text(params, "name"), arguments))


class _EventStream(Response):
    """Runs a request while it sends its events; one whose client goes away is cancelled."""

    def __init__(
        self, relay: RemoteRelay, streams: dict[str, RemoteRelay], answer: Coroutine[Any, Any, JsonObject]
    ) -> None:
        self._relay = relay
        self._streams = streams
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        stream_id = secrets.token_urlsafe(24)
        self._streams[stream_id] = self._relay
        headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await _send_line(send, {ID: stream_id})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_on_disconnect, receive, tasks.cancel_scope)
                tasks.start_soon(self._send_events, send)
                last = await _ended(self._answer)
                await self._relay.events.put(last)
                await self._relay.events.join()
                tasks.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            del self._streams[stream_id]
            self._answer.close()

    async def _send_events(self, send: Send) -> None:
        events = self._relay.events
        while True:
            event: JsonObject | None = None
            with anyio.move_on_after(HEARTBEAT_SECONDS):
                event = await events.get()
            await _send_line(send, event or {})
            if event is not None:
                events.task_done()


async def _ended(answer: Coroutine[Any, Any, JsonObject]) -> JsonObject:
    try:
        return {RESULT: await answer}
    except ToolscriptError as error:
        return {STATUS: ERROR_TABLE[type(error)].http_status, **envelope_of(error)}


async def _send_line(send: Send, event: JsonObject) -> None:
    line = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    await send({"type": "http.response.body", "body": line, "more_body": True})
