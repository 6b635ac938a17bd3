"""A client that is asked in this process, and notes what it is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolscript.core.items import JsonObject

EVERYTHING: JsonObject = {"elicitation": {}, "sampling": {}, "roots": {}}
ANSWERS: Mapping[str, JsonObject] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///somewhere"}]},
}


@dataclass
class Asked:
    """Implements `Relay`. It answers once `may_answer` is set, or with the error."""

    client: str
    capabilities: JsonObject = field(default_factory=lambda: EVERYTHING)
    log_level: str = ""
    wants_progress: bool = True
    error: Exception | None = None
    questions: list[JsonObject] = field(default_factory=list)
    progress: list[tuple[float, float | None]] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    may_answer: anyio.Event = field(default_factory=anyio.Event)
    was_asked: anyio.Event = field(default_factory=anyio.Event)

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        del message
        self.progress.append((progress, total))

    async def on_log(self, params: JsonObject) -> None:
        self.logs.append((params["level"], params["logger"], params["data"]))

    async def ask(self, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        self.questions += questions.values()
        self.was_asked.set()
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return {key: ANSWERS[str(question["method"])] for key, question in questions.items()}


def at_once(client: str = "one", **more: Any) -> Asked:
    """Return a client that answers at once."""
    asked = Asked(client, **more)
    asked.may_answer.set()
    return asked
