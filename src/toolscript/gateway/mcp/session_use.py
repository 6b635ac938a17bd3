"""What an MCP client's session puts into its model's context, for the report of what the gateway saves."""

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.tokens import as_json, definitions_of, listed_bytes
from toolscript.gateway.activity import ActivityLog, SessionUse
from toolscript.gateway.callers import current_client
from toolscript.gateway.mcp.definitions import definitions_of_tools
from toolscript.gateway.model import Gateway

# Over HTTP clients have no sessions: what a client asks after such a pause is another one.
SESSION_SECONDS = 30 * 60.0
# How often the list of all tools is measured in a session; servers come and go.
LIST_EVERY_SECONDS = 10 * 60.0
MAX_SESSIONS = 1_000


class SessionUsage:
    """Adds up the requests of sessions. `is_one`: all of them are of one session, that of a client over stdio."""

    def __init__(
        self,
        gateway: Gateway,
        log: ActivityLog,
        *,
        is_one: bool,
        split: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._own_bytes = listed_bytes(definitions_of_tools(split=split))
        self._gateway = gateway
        self._log = log
        self._is_one = is_one
        # By client: its session, its last request, and when all tools were measured last.
        self._sessions: OrderedDict[str, tuple[str, float, float]] = OrderedDict()
        self._measuring: set[asyncio.Task[None]] = set()

    def note(self, name: str, arguments: JsonObject, result: CallResult) -> None:
        """Add a request: what the model writes, and the text that it reads."""
        client, now = current_client(), self._clock()
        session, measured = self._session(client, now)

        def use() -> SessionUse:
            read = sum(
                len(str(block["text"]).encode("utf-8", "replace"))
                for block in result.content
                if block.get("type") == "text"
            )
            written = len(as_json({"name": name, "arguments": arguments}).encode("utf-8", "replace"))
            return SessionUse(session, client, now, 1, read + written, self._own_bytes)

        self._log.use(use)
        if now - measured > LIST_EVERY_SECONDS:
            self._sessions[self._key(client)] = (session, now, now)
            task = asyncio.create_task(self._measure(session, client, now))
            self._measuring.add(task)
            task.add_done_callback(self._measuring.discard)

    def _key(self, client: str) -> str:
        return "" if self._is_one else client

    def _session(self, client: str, now: float) -> tuple[str, float]:
        """Return the session of a request, and when its tools were measured."""
        key = self._key(client)
        session, last, measured = self._sessions.pop(key, ("", 0.0, 0.0))
        if not session or (not self._is_one and now - last > SESSION_SECONDS):
            session, measured = secrets.token_hex(8), 0.0
        self._sessions[key] = (session, now, measured)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session, measured

    async def _measure(self, session: str, client: str, at: float) -> None:
        """Measure what the list of all tools would cost: after an answer, which must not wait for it."""
        with contextlib.suppress(ToolscriptError):
            definitions = definitions_of(await self._gateway.items())

            def use() -> SessionUse:
                size, tools = listed_bytes(definitions), len(definitions)
                return SessionUse(session, client, at, listed_bytes=size, tools=tools)

            self._log.use(use)
