"""Requests of clients of the version 2026-07-28 that wait for an answer of their client.

Such a client gets a server's question as the result of its request, and sends the request again with the answer.
Meanwhile the request goes on here: the server's own state stays in this process, and the client gets a random id,
which counts once, and for the same request of the same client alone.
"""

import asyncio
import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolscript.core.errors import ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import Context
from toolscript.core.mcp_client.relay import relayed_to
from toolscript.gateway.callers import current_client
from toolscript.gateway.mcp.relaying import ContextRelay, LogLevels, is_modern

STATE = "relay-"
# A request whose client does not answer by then is cancelled.
OPEN_SECONDS = 10 * 60.0
MAX_OPEN = 500

Result = dict[str, Any]
Work = Callable[[], Awaitable[Result]]


class Relays:
    """Does the work of requests with a way back to their clients, in all versions of the protocol."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[_Parked, asyncio.TimerHandle]] = OrderedDict()
        self.levels = LogLevels()

    async def answer(self, context: Context, work: Work) -> Result:
        """Return the result of the work, or what the client is to answer first."""
        if not is_modern(context):
            with relayed_to(ContextRelay(context, self.levels)):
                return await work()
        params = context.params or {}
        state, bound_to = params.get("requestState"), _bound_to(context)
        if isinstance(state, str) and state.startswith(STATE):
            parked = self._taken(state, bound_to)
            parked.go_on(context, params.get("inputResponses") or {})
        else:
            parked = _Parked(context, self.levels, bound_to, work)
        questions = await parked.until_asked()
        if questions is None:
            return parked.result()
        return self._park(parked, questions)

    def close(self) -> None:
        while self._open:
            self._expire(next(iter(self._open)))

    def _taken(self, state: str, bound_to: str) -> "_Parked":
        if state not in self._open or self._open[state][0].bound_to != bound_to:
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})
        parked, expiry = self._open.pop(state)
        expiry.cancel()
        return parked

    def _park(self, parked: "_Parked", questions: Mapping[str, JsonObject]) -> Result:
        state = STATE + secrets.token_urlsafe(24)
        self._open[state] = parked, asyncio.get_running_loop().call_later(OPEN_SECONDS, self._expire, state)
        while len(self._open) > MAX_OPEN:
            self._expire(next(iter(self._open)))
        return {"resultType": "input_required", "inputRequests": dict(questions), "requestState": state}

    def _expire(self, state: str) -> None:
        parked, expiry = self._open.pop(state)
        expiry.cancel()
        parked.cancel()


class _Parked:
    """Implements `Relay` for one request, which goes on in a task of its own while its client answers."""

    def __init__(self, context: Context, levels: LogLevels, bound_to: str, work: Work) -> None:
        self._levels = levels
        self._relay = ContextRelay(context, levels)
        self.bound_to = bound_to
        self.client = self._relay.client
        # Each is a question of the server, or several of one time, and the future of the answers.
        self._asked: asyncio.Queue[tuple[Mapping[str, JsonObject], asyncio.Future[Mapping[str, JsonObject]]]]
        self._asked = asyncio.Queue()
        self._waiting: asyncio.Future[Mapping[str, JsonObject]] | None = None
        with relayed_to(self):
            self._task = asyncio.ensure_future(work())

    @property
    def capabilities(self) -> JsonObject:
        return self._relay.capabilities

    @property
    def log_level(self) -> str:
        return self._relay.log_level

    @property
    def wants_progress(self) -> bool:
        return self._relay.wants_progress

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._relay.on_progress(progress, total, message)

    async def on_log(self, params: JsonObject) -> None:
        await self._relay.on_log(params)

    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        answers: asyncio.Future[Mapping[str, JsonObject]] = asyncio.get_running_loop().create_future()
        await self._asked.put((questions, answers))
        return await answers

    async def until_asked(self) -> Mapping[str, JsonObject] | None:
        """Wait for the next questions; return None once the work is done. Cancelled, it cancels the work."""
        asked = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait({asked, self._task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            if not asked.done():
                asked.cancel()
        if not asked.done() or self._task.done():
            return None
        questions, self._waiting = asked.result()
        return questions

    def go_on(self, context: Context, answers: Mapping[str, JsonObject]) -> None:
        """Go on with the client's answers, for its new request."""
        self._relay = ContextRelay(context, self._levels)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answers)

    def result(self) -> Result:
        if self._task.cancelled():
            raise ServerRejected("this request was cancelled")
        return self._task.result()

    def cancel(self) -> None:
        self._task.cancel()
        # What it ends with is for nobody.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())


def _bound_to(context: Context) -> str:
    params = context.params or {}
    kept = {name: params[name] for name in params if name not in ("_meta", "inputResponses", "requestState")}
    call = json.dumps([current_client(), context.method, kept], sort_keys=True)
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
