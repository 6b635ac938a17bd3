"""JSON-RPC messages of requests that pass through `/mcp/{server}`, read as any server reads them.

What is checked must be what the server does. So where anything is checked, a request is refused that two readers
could understand in two ways: a key that is there twice or in other letters, a name that is no text, and what is
not JSON in UTF-8.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse

from toolscript.core.errors import InvalidRequest
from toolscript.core.mcp_client.failures import CALL

GET_PROMPT, READ_RESOURCE = "prompts/get", "resources/read"
# The member of a request's params that names what it is about, by its method.
NAMED = {CALL: "name", GET_PROMPT: "name", READ_RESOURCE: "uri"}
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Requested:
    """The messages of a request: one, or several of older clients."""

    messages: tuple[Message, ...] = ()
    is_batch: bool = False

    @property
    def called_tools(self) -> list[tuple[object, str]]:
        """The id and the tool of each call."""
        calls = [message for message in self.messages if message.get("method") == CALL]
        return [(call.get("id"), call["params"]["name"]) for call in calls]

    @property
    def awaits_answer(self) -> bool:
        return any("id" in message and "method" in message for message in self.messages)

    def answer(self, answers: list[dict[str, object]]) -> JSONResponse:
        return JSONResponse(answers if self.is_batch or not answers else answers[0])


def requested_in(body: bytes, *, strictly: bool) -> Requested:
    """Return the messages of a body. Read `strictly`, one that is unclear raises InvalidRequest."""
    if not body:
        return Requested()
    try:
        data, is_clear = read_json(body)
    except (ValueError, RecursionError):
        data, is_clear = None, False
    if strictly and not is_clear:
        raise InvalidRequest("the body is not JSON in UTF-8, has a key twice, or is nested too deeply")
    is_batch = isinstance(data, list)
    messages = tuple(message for message in (data if is_batch else [data]) if isinstance(message, Mapping))
    for message in messages if strictly else ():
        _require_clear(message)
    return Requested(messages, is_batch)


def read_json(text: bytes) -> tuple[Any, bool]:
    """Return JSON in UTF-8, and whether no key is there twice: here the last one counts, elsewhere the first."""
    repeated = []

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) < len(pairs):
            repeated.append(value)
        return value

    return json.loads(text.decode("utf-8-sig"), object_pairs_hook=members), not repeated


def _require_clear(message: Message) -> None:
    _require_spelled(message, _MEMBERS)
    method = message.get("method")
    field = NAMED.get(method) if isinstance(method, str) else None
    if field is not None:
        params = message.get("params")
        if not isinstance(params, Mapping) or not _is_text(params.get(field)):
            raise InvalidRequest(f"{method}: `params.{field}` must be a text")
        _require_spelled(params, {field})


def _is_text(value: object) -> bool:
    """Half a surrogate pair is none: readers put different characters in its place."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()


def _require_spelled(members: Mapping[str, object], known: Iterable[str]) -> None:
    """Some readers take `Name` for `name`."""
    if other := [key for key in members if key not in known and key.casefold() in known]:
        raise InvalidRequest(f"`{other[0]}` must be written `{other[0].casefold()}`")
