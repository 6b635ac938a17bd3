"""Asks the person at an MCP client whether a call may be made, where a rule wants it: by elicitation.

Clients of the version 2026-07-28 get the question as a result, and repeat their call with the answer. Older ones
are asked while their call runs, where the connection has a way back to them.
"""

import hashlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolscript.core.errors import Forbidden
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import Context
from toolscript.core.text import visible
from toolscript.core.tokens import as_json
from toolscript.gateway.callers import current_client
from toolscript.gateway.recording import without_secret_words
from toolscript.gateway.rules import CONFIRMATION, MAX_NAME

ALLOW = "allow"
# A question that is not answered by then is asked again, or allows nothing.
OPEN_SECONDS = 15 * 60.0
MAX_OPEN = 1_000
MAX_ARGUMENTS_SHOWN, MAX_NAMED, MAX_KEY = 1_500, 30, 60
_STATE = "rule-"
# Nothing is to be filled in: to accept is to allow.
_NOTHING_TO_FILL_IN: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Question:
    """A question about one call: `tool` is what it calls, `bound_to` a hash of client, name and arguments."""

    tool: str
    bound_to: str
    closes_at: float


class Questions:
    """The open questions. What a client sends back names one, which is answered once, for the same call alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: OrderedDict[str, Question] = OrderedDict()

    def add(self, tool: str, params: CallToolRequestParams) -> str:
        """Return the state that the client sends back with the answer."""
        state = _STATE + secrets.token_urlsafe(24)
        self._open[state] = Question(tool, _bound_to(params), self._clock() + OPEN_SECONDS)
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return state

    def answered(self, params: CallToolRequestParams) -> tuple[str, bool]:
        """Return the tool of the question that this call answers and whether it is allowed; without one, no tool.

        Raise for an answer to no open question: one that was made up, used before, or meant for another call.
        """
        state = params.request_state or ""
        if not state.startswith(_STATE):
            return "", False
        question = self._open.pop(state, None)
        if question is None or question.closes_at < self._clock() or question.bound_to != _bound_to(params):
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})
        answer = (params.input_responses or {}).get(ALLOW)
        return question.tool, getattr(answer, "action", "") == "accept"


def _bound_to(params: CallToolRequestParams) -> str:
    call = json.dumps([current_client(), params.name, params.arguments or {}], sort_keys=True)
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()


def message_of(refusal: Forbidden, arguments: JsonObject) -> str:
    """Return the question in words. Each line has one thing, and what cannot be seen is spelled out."""
    about = refusal.details[CONFIRMATION]
    assert isinstance(about, dict)  # noqa: S101
    lines = [
        f"Allow {_name(current_client())} to call {_name(str(refusal.details['tool']))}?",
        f"Risk: {about['risk']}",
        *_arguments(arguments),
        f"Asked by {about['rule']}",
    ]
    return "\n".join(lines)


def _arguments(arguments: JsonObject) -> list[str]:
    """Show arguments whole, or else both ends of each: nothing is hidden behind something long."""
    whole = as_json(arguments)
    if len(whole) <= MAX_ARGUMENTS_SHOWN:
        return [f"Arguments: {_plain(whole)}"]
    shown = [*islice(arguments.items(), MAX_NAMED)]
    each = MAX_ARGUMENTS_SHOWN // len(shown)
    more = len(arguments) - len(shown)
    return [
        "Arguments, which are too long to be shown whole:",
        *(f"  {_cut(as_json(key), MAX_KEY)}: {_cut(as_json(value), each)}" for key, value in shown),
        *([f"  and {more:,} more arguments, which are not shown"] if more else []),
    ]


def _cut(text: str, most: int) -> str:
    """Return both ends of a text, and how much is missing between them."""
    left_out = len(text) - most
    if left_out <= 0:
        return _plain(text)
    head = most * 2 // 3
    return f"{_plain(text[:head])} ... {left_out:,} letters left out ... {_plain(text[head - most :])}"


def _plain(text: str) -> str:
    return visible(without_secret_words(text))


def _name(text: str) -> str:
    """Return a name in one line: a second one could pose as a part of the question."""
    return " ".join(visible(text).split())[:MAX_NAME]


def can_be_asked(context: Context) -> bool:
    """Return whether the client shows forms. One that names no kind of elicitation means forms."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS or context.session.can_send_request


def question_result(message: str, state: str) -> dict[str, Any]:
    """Return the result that asks a client of the current version."""
    params = {"mode": "form", "message": message, "requestedSchema": _NOTHING_TO_FILL_IN}
    return {
        "resultType": "input_required",
        "inputRequests": {ALLOW: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    }


async def is_allowed_by_person(context: Context, message: str) -> bool:
    """Ask a client of an older version, and wait for the answer. None in time allows nothing."""
    with anyio.move_on_after(OPEN_SECONDS), suppress(MCPError):
        answer = await context.session.elicit_form(message, _NOTHING_TO_FILL_IN, context.request_id)
        return answer.action == "accept"
    return False
