"""The ways back to MCP clients: what a server says while it works for one, as the version of that one has it."""

import asyncio
import secrets
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, RootModel
from starlette.requests import Request

from toolscript.core.errors import ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import SESSION_HEADER, Context, client_of
from toolscript.core.mcp_client.relay import LOG_LEVELS
from toolscript.gateway.callers import CLIENT_OF_TOKEN

# What servers ask clients for.
_ASKED_OF_CLIENTS = ("elicitation", "sampling", "roots")
MAX_LEVELS = 10_000
# Of a process that serves one client: requests of it are of that one.
_THIS_PROCESS = secrets.token_hex(16)


class _Question(BaseModel):
    method: str
    params: dict[str, Any] | None = None


class _Answer(RootModel[dict[str, Any]]): ...


class LogLevels:
    """The log level that each client of the older versions has set."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, str] = OrderedDict()

    def set(self, client: str, level: str) -> None:
        self._levels[client] = level
        self._levels.move_to_end(client)
        while len(self._levels) > MAX_LEVELS:
            self._levels.popitem(last=False)

    def of(self, client: str) -> str:
        return self._levels.get(client, "")


def session_of(context: Context) -> str:
    """Return the session of a client of the older versions; empty for any other."""
    return context.request.headers.get(SESSION_HEADER, "") if isinstance(context.request, Request) else ""


def client_key(context: Context) -> str:
    """Return what tells this client from all others: its session, or the process that serves it alone.

    A request without a session is a client of its own: nothing shows that another request is of the same one.
    """
    if not isinstance(context.request, Request):
        return _THIS_PROCESS
    return session_of(context) or secrets.token_hex(16)


def name_of(context: Context) -> str:
    """Return the client whose token the request has, else the name that it states."""
    scope = context.request.scope if isinstance(context.request, Request) else {}
    return str(scope.get(CLIENT_OF_TOKEN) or client_of(context))


def is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


class ContextRelay:
    """Implements `Relay` for a client that is asked while its request runs, as until 2025-11-25."""

    def __init__(self, context: Context, levels: LogLevels) -> None:
        self._context = context
        self.client = client_key(context)
        meta: Mapping[str, Any] = context.meta or {}
        self.log_level = str(meta.get(LOG_LEVEL_META_KEY, "")) if is_modern(context) else levels.of(self.client)
        self.wants_progress = meta.get("progressToken", meta.get("progress_token")) is not None

    @property
    def capabilities(self) -> JsonObject:
        declared = self._context.session.client_capabilities
        if declared is None or not (is_modern(self._context) or self._context.session.can_send_request):
            return {}
        told = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {name: told[name] for name in _ASKED_OF_CLIENTS if name in told}

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._context.session.report_progress(progress, total, message)

    async def on_log(self, params: JsonObject) -> None:
        level = str(params.get("level"))
        if level not in LOG_LEVELS or not self._is_wanted(level):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await self._context.session.send_log_message(
                level,  # type: ignore[arg-type]
                params.get("data"),
                str(params.get("logger") or "") or None,
                self._context.request_id,
            )

    def _is_wanted(self, level: str) -> bool:
        if not self.log_level:
            # Until 2025-11-25 the server decides what it sends to a client that has set no level.
            return not is_modern(self._context)
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)

    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        answers = await asyncio.gather(*map(self._ask_one, questions.values()))
        return dict(zip(questions, answers, strict=True))

    async def _ask_one(self, question: JsonObject) -> JsonObject:
        metadata = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            request: Any = _Question.model_validate(question)
            answer = await self._context.session.send_request(request, _Answer, metadata=metadata)
        except MCPError as error:
            raise ServerRejected(error.error.message, details={"code": error.error.code}) from error
        except ValueError as error:
            raise ServerRejected("the client's answer does not follow the protocol") from error
        return answer.root
