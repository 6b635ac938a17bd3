"""A gateway whose searches and calls are logged. It answers as the gateway inside does, with or without a log."""

import re
import time
from asyncio import CancelledError
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeVar

from toolscript.core.errors import InvalidRequest, OutcomeUnknown, Rejected, ToolscriptError
from toolscript.core.items import SEPARATOR, Item, JsonObject, split_tool_id
from toolscript.core.mcp_client.model import CallResult, ServerSpec, ServerState, masked
from toolscript.core.text import readable
from toolscript.core.tokens import as_json, size_of
from toolscript.gateway.activity import Action, ActivityLog, Ending, Entry, Outcome
from toolscript.gateway.approvals import Decision, Review
from toolscript.gateway.callers import ITSELF, MCP, current_client
from toolscript.gateway.config.secrets import MASK, looks_secret, secret_words
from toolscript.gateway.json import answer_to_json, call_to_json
from toolscript.gateway.listed_tools import ToolPage
from toolscript.gateway.model import (
    COMPLETE,
    PAGE,
    SUBSCRIBE,
    Change,
    EntryPage,
    GatewayHealth,
    LocalAnswer,
    LocalQuery,
    McpGateway,
)

# Of arguments that are logged: the letters of one text, and of all of them as JSON.
MAX_TEXT, MAX_ARGUMENTS = 500, 4_000
# Letters of one text that are searched for secrets, and of all arguments that are searched at all: it takes long.
MAX_SEARCHED, MAX_ALL_SEARCHED = 2_000, 8_000
MAX_DEPTH = 20
TOOL_ERROR = "TOOL_ERROR"

_WORD = re.compile(r"[^\s\"'`,;(){}\[\]<>]+")
_CREDENTIALS = re.compile(r"\b(bearer|basic|token)\s+[^\s\"',;]+", re.IGNORECASE)

FindServer = Callable[[str], ServerSpec | None]
T = TypeVar("T")


class RecordedGateway:
    """Implements the port `McpGateway`. With `arguments`, they are logged, too, without what looks like a secret.

    `server_of` returns the server of a request for a prompt or resource, empty if none has it.
    """

    def __init__(
        self,
        gateway: McpGateway,
        log: ActivityLog,
        *,
        arguments: bool = False,
        find_server: FindServer = lambda _name: None,
        server_of: Callable[[str, JsonObject], str] = lambda _method, _params: "",
    ) -> None:
        self._gateway = gateway
        self._log = log
        self._keeps_arguments = arguments
        self._find_server = find_server
        self._server_of = server_of

    async def search(self, query: LocalQuery) -> LocalAnswer:
        """Search. The entry is written after the answer is given: a search can be repeated."""
        client = current_client()
        if client == ITSELF:
            return await self._gateway.search(query)
        began, clock = time.time(), time.perf_counter()
        size = len(query.text.encode("utf-8", "replace"))
        entry = Entry(Action.SEARCH, began, client, "", "", size, self._arguments({"query": query.text}))
        try:
            answer = await self._gateway.search(query)
        except ToolscriptError as error:
            self._log.add(entry, Ending(_outcome_of(error, Outcome.ERROR), _since(clock), error.code))
            raise
        ending = Ending(Outcome.OK, _since(clock), measure=lambda: size_of(answer_to_json(answer)))
        self._log.add(entry, ending)
        return answer

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool: its entry is written before it is sent, and completed before the result is returned."""
        full = "" if SEPARATOR in tool else await self._gateway.tool_named(tool)
        server, name = _names(full or tool)
        return await self._recorded(server, name, arguments, self._gateway.call(tool, arguments), ending_of)

    async def entries(self, kind: str, cursor: str = "", limit: int = PAGE) -> EntryPage:
        return await self._gateway.entries(kind, cursor, limit)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Get a prompt or read a resource, which are logged as calls; other requests are not."""
        if method in (COMPLETE, SUBSCRIBE):
            return await self._gateway.request(method, params)
        server = self._server_of(method, params)
        name = _without_secrets("", str(params.get("name") or params.get("uri") or ""), self._find_server(server))
        given = params.get("arguments")
        sent = self._gateway.request(method, params)
        arguments = given if isinstance(given, Mapping) else {}
        return await self._recorded(server, f"{method} {name}", arguments, sent, _ending_of_request)

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        await self._gateway.watch(uris, tell)

    async def _recorded(
        self,
        server: str,
        name: str,
        arguments: JsonObject,
        sent: Coroutine[Any, Any, T],
        ending_of_result: Callable[[T, float], Ending],
    ) -> T:
        client = current_client()
        entry = Entry(
            Action.CALL,
            time.time(),
            MCP if client == ITSELF else client,
            server,
            name,
            size_of(arguments),
            self._arguments(arguments, server),
        )
        clock = time.perf_counter()
        ticket = self._log.begin(entry)
        # What is cancelled or breaks from here on has perhaps been sent.
        ending = Ending(Outcome.UNKNOWN, 0.0)
        try:
            with closing(sent):
                await self._log.written()
                result = await sent
            ending = ending_of_result(result, _since(clock))
        except ToolscriptError as error:
            ending = Ending(_outcome_of(error, Outcome.REFUSED), _since(clock), error.code)
            raise
        except CancelledError:
            ending = Ending(Outcome.UNKNOWN, _since(clock), "CANCELLED")
            raise
        finally:
            self._log.finish(ticket, ending)
        await self._log.written()
        return result

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        return await self._gateway.items(wanted)

    async def listed_tools(self, after: str = "") -> ToolPage:
        return await self._gateway.listed_tools(after)

    async def tool_named(self, name: str) -> str:
        return await self._gateway.tool_named(name)

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        return await self._gateway.typescript(wanted, compact=compact)

    async def reviews(self) -> Sequence[Review]:
        return await self._gateway.reviews()

    async def decide(self, decision: Decision, digests: Sequence[str]) -> Sequence[Review]:
        return await self._gateway.decide(decision, digests)

    async def servers(self) -> Sequence[ServerState]:
        return await self._gateway.servers()

    async def health(self) -> GatewayHealth:
        return replace(await self._gateway.health(), activity=self._log.problem)

    def _arguments(self, arguments: JsonObject, server: str = "") -> str | None:
        return arguments_shown(arguments, self._find_server(server)) if self._keeps_arguments else None


def ending_of(result: CallResult, took_ms: float) -> Ending:
    outcome, error = (Outcome.ERROR, TOOL_ERROR) if result.is_error else (Outcome.OK, "")
    return Ending(outcome, took_ms, error, lambda: size_of(call_to_json(result)))


def _ending_of_request(result: JsonObject, took_ms: float) -> Ending:
    return Ending(Outcome.OK, took_ms, measure=lambda: size_of(result))


def arguments_shown(arguments: JsonObject, spec: ServerSpec | None = None) -> str:
    """Return arguments as JSON, shortened, without what looks like a secret or is one of the server."""
    if not _is_far_too_long(arguments):
        text = readable(as_json(_shown("", arguments, spec, 0)))
        if len(text) <= MAX_ARGUMENTS:
            return text
    return as_json({"left_out": f"{size_of(arguments):,} bytes"})


def _is_far_too_long(arguments: JsonObject) -> bool:
    """Count letters as they would be shown, each text cut and no secret masked; stop when it is clear."""
    left, values = MAX_ALL_SEARCHED, list[object]([arguments])
    while values and left > 0:
        value = values.pop()
        left -= 2 + (min(len(value), MAX_TEXT) if isinstance(value, str) else 0)
        if isinstance(value, Mapping):
            values += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            values += value
    return left <= 0


def _shown(name: str, value: object, spec: ServerSpec | None, depth: int) -> object:
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {
            _without_secrets("", str(key), spec): _shown(str(key), inner, spec, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(name, inner, spec, depth + 1) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    return _without_secrets(name, value, spec) if isinstance(value, str) else _number(name, value)


def _number(name: str, value: object) -> object:
    return MASK if looks_secret(name, str(value)) else value


def _without_secrets(name: str, text: str, spec: ServerSpec | None) -> str:
    """Mask a text that its name makes a secret, and words in it that look like one."""
    if spec is not None and len(text) > MAX_SEARCHED:
        # Before the cut, which could leave half of a secret with spaces. It is quick, unlike the search for words.
        text = masked(text, spec)
    is_cut = len(text) > MAX_SEARCHED
    text = _head(text) if is_cut else text
    if looks_secret(name, text):
        return MASK
    if spec is not None:
        text = masked(text, spec)
    text = without_secret_words(text)
    return f"{text[:MAX_TEXT]}..." if is_cut or len(text) > MAX_TEXT else text


def without_secret_words(text: str) -> str:
    text = _CREDENTIALS.sub(lambda match: f"{match[1]} {MASK}", text)
    words = _WORD.findall(text)
    secret = iter(secret_words(words))
    return _WORD.sub(lambda match: MASK if next(secret) else match[0], text)


def _head(text: str) -> str:
    """Return the start of a long text, without its last word: half of a secret may not look like one."""
    head = text[:MAX_SEARCHED]
    last = _WORD.match(head[::-1])
    return head[: len(head) - last.end()] if last else head


def _outcome_of(error: ToolscriptError, otherwise: Outcome) -> Outcome:
    """Return what an error says of a call: `otherwise` for one that says no more than that it failed."""
    if isinstance(error, OutcomeUnknown):
        return Outcome.UNKNOWN
    if isinstance(error, Rejected):
        return Outcome.ERROR
    return Outcome.REFUSED if isinstance(error, InvalidRequest) else otherwise


def _names(tool: str) -> tuple[str, str]:
    try:
        return split_tool_id(tool)
    except InvalidRequest:
        return "", tool


def _since(clock: float) -> float:
    return round((time.perf_counter() - clock) * 1000, 3)
