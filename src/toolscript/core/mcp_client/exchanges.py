"""The requests of clients that one server is answering, and which of them a message of the server is about.

A question reaches the client whose request caused it, or nobody: one process of a server works for all clients.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

from toolscript.core.errors import ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.relay import ELICIT, Relay, why_unable
from toolscript.core.text import visible_json

# A person answers, or a model; whoever waits longer has gone away.
ANSWER_SECONDS = 15 * 60.0
MAX_QUESTIONS = 20
# A server may go on working for a request after nobody waits for it, and may ask about it.
ABANDONED_SECONDS = ANSWER_SECONDS

_ONE = "question"
INVALID_REQUEST, METHOD_NOT_FOUND = -32600, -32601


class Exchange:
    """A client's request at a server, with the limit of its time, which stands still while a question is open."""

    def __init__(self, relay: Relay | None, server: str) -> None:
        self.relay = relay
        self._server = server
        self._asked = 0
        self._open = 0
        self._left = 0.0
        self.limit = anyio.CancelScope()

    @property
    def client(self) -> str:
        return self.relay.client if self.relay else ""

    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Ask the client. Raise ServerRejected where it cannot be asked, or does not answer."""
        if self.relay is None:
            raise refused("the client that made this request cannot be asked anything", METHOD_NOT_FOUND)
        for question in questions.values():
            if why := why_unable(self.relay.capabilities, question):
                raise refused(f"{self._server} asks the client: {why}", METHOD_NOT_FOUND)
        self._asked += len(questions)
        if self._asked > MAX_QUESTIONS:
            raise refused(f"more than {MAX_QUESTIONS} questions about one request")
        with self._time_stands_still():
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    asked = {key: self._with_server(question) for key, question in questions.items()}
                    return await self.relay.ask(asked)
            except TimeoutError:
                raise refused(f"no answer within {ANSWER_SECONDS:g} seconds") from None

    def _with_server(self, question: JsonObject) -> JsonObject:
        """Name the server to the person who is asked, who sees the gateway alone, and leave nothing invisible."""
        params = question.get("params")
        if question.get("method") != ELICIT or not isinstance(params, Mapping):
            return question
        shown = {str(name): visible_json(value) for name, value in params.items()}
        return {**question, "params": {**shown, "message": f"{self._server} asks: {shown.get('message', '')}"}}

    @contextmanager
    def _time_stands_still(self) -> Iterator[None]:
        if not self._open:
            self._left = self.limit.deadline - anyio.current_time()
            self.limit.deadline = math.inf
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self.limit.deadline = anyio.current_time() + self._left


_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class Exchanges:
    """The requests of clients at one server."""

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._open: list[Exchange] = []
        self._abandoned: dict[str, float] = {}

    @contextmanager
    def begin(self, relay: Relay | None) -> Iterator[Exchange]:
        """Note a request while the context is open; one that ends by an exception the server may go on with."""
        exchange = Exchange(relay, self._server)
        self._open.append(exchange)
        token = _exchange.set(exchange)
        is_answered = False
        try:
            yield exchange
            is_answered = True
        except ServerRejected:
            is_answered = True
            raise
        finally:
            _exchange.reset(token)
            self._open.remove(exchange)
            if not is_answered:
                self._abandoned = {**self._still_abandoned(), exchange.client: self._clock() + ABANDONED_SECONDS}

    def cause(self) -> Exchange:
        """Return the request that a message of the server is about; raise ServerRejected if that is not clear.

        Over HTTP a message comes on the stream of its request, and in its context.
        """
        named = _exchange.get()
        if named is not None:
            if named in self._open:
                return named
            raise refused(f"the request that {self._server} asks about has ended")
        clients = {exchange.client for exchange in self._open}
        if not clients:
            raise refused(f"{self._server} asks while no client's request is in flight there")
        if len(clients | self._still_abandoned().keys()) > 1:
            raise refused(f"several clients use {self._server} now: it is not clear which of them to ask")
        return self._open[-1]

    def _still_abandoned(self) -> dict[str, float]:
        now = self._clock()
        return {client: until for client, until in self._abandoned.items() if until > now}

    async def ask_one(self, method: str, params: JsonObject) -> JsonObject:
        """Return the answer to a question of a server that waits for it while it works."""
        exchange = self.cause()
        answers = await exchange.ask({_ONE: {"method": method, "params": params}})
        if _ONE not in answers:
            raise refused("the client gives no answer")
        return answers[_ONE]

    async def log(self, params: JsonObject) -> None:
        """Hand a log message on, under the server's name; one of which is not clear whose it is, is dropped."""
        try:
            relay = self.cause().relay
        except ServerRejected:
            return
        if relay is not None:
            name = params.get("logger")
            await relay.on_log({**params, "logger": f"{self._server}/{name}" if name else self._server})


def refused(message: str, code: int = INVALID_REQUEST) -> ServerRejected:
    return ServerRejected(message, details={"code": code})
