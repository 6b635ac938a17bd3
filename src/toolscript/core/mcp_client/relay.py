"""The way back to the client whose request a server is answering: for its progress, log messages and questions.

Apart from what uses it: every command loads this.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from toolscript.core.items import JsonObject

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
QUESTIONS = frozenset({ELICIT, SAMPLE, ROOTS})
# From the most to the least.
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Relay(Protocol):
    """The client that made a request. `client` is the same for all requests of one client, and no other's.

    `capabilities` are those that it declares in MCP; `log_level` is the one that it asked for, if any.
    """

    @property
    def client(self) -> str: ...
    @property
    def capabilities(self) -> JsonObject: ...
    @property
    def log_level(self) -> str: ...
    @property
    def wants_progress(self) -> bool: ...
    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None: ...
    async def on_log(self, params: JsonObject) -> None: ...
    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Return the client's answers by key; a question has a `method` and `params`, as in MCP.

        A client may leave some out. Raise ServerRejected with the error's `code` for one that it refuses.
        """


_relay: ContextVar[Relay | None] = ContextVar("relay", default=None)


def current_relay() -> Relay | None:
    """Return the way back to the client whose request is being answered; None if it has none."""
    return _relay.get()


@contextmanager
def relayed_to(relay: Relay | None) -> Iterator[None]:
    """Give the requests of the context this way back."""
    token = _relay.set(relay)
    try:
        yield
    finally:
        _relay.reset(token)


def why_unable(capabilities: JsonObject, question: JsonObject) -> str:
    """Return why a client with these capabilities cannot be asked this; empty if it can."""
    method, params = question.get("method"), question.get("params")
    given = params if isinstance(params, Mapping) else {}
    if method == ROOTS:
        return "" if "roots" in capabilities else "the client shows no roots"
    if method == SAMPLE:
        return _why_not_sampled(capabilities, given)
    if method == ELICIT:
        return _why_not_elicited(capabilities, given)
    return f"nothing is known of {str(method)[:100]!r}"


def _why_not_sampled(capabilities: JsonObject, params: JsonObject) -> str:
    sampling = capabilities.get("sampling")
    if not isinstance(sampling, Mapping):
        return "the client has no sampling"
    if ("tools" in params or "toolChoice" in params) and "tools" not in sampling:
        return "the client has no sampling with tools"
    return ""


def _why_not_elicited(capabilities: JsonObject, params: JsonObject) -> str:
    elicitation = capabilities.get("elicitation")
    if not isinstance(elicitation, Mapping):
        return "the client cannot ask its user (elicitation)"
    mode = params.get("mode", "form")
    # A client that names no kind of elicitation means forms.
    kinds = {kind for kind in ("form", "url") if kind in elicitation} or {"form"}
    return "" if mode in kinds else f"the client cannot ask its user by {str(mode)[:20]}"
