"""Sends documents in requests of a few hundred, one after the other, and goes on after whatever goes wrong."""

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from toolscript.adapters.document_files import Found, FoundDocument
from toolscript.adapters.http_clients.documents import PutAnswer
from toolscript.adapters.sending_state import SendingState
from toolscript.errors import ToolscriptError, TooManyRequests, Unavailable
from toolscript.model.document_json import document_to_json
from toolscript.model.document_sending import Place, SendingReport
from toolscript.model.progress import OnProgress, Progress

MOST_IN_REQUEST = 200
MOST_REQUEST_BYTES = 1024 * 1024
MOST_TRIES = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# However long a service asks to be left alone.
LONGEST_WAIT = 300.0
TASK = "sending documents"

# Why it pauses, and for how many seconds.
OnWait = Callable[[ToolscriptError, float], None]


@dataclass(frozen=True)
class Ways:
    """How documents are sent, how it is remembered how far that has come, and how time passes."""

    send: Callable[[Sequence[bytes]], PutAnswer]
    remember: Callable[[SendingState], None]
    on_progress: OnProgress
    on_wait: OnWait
    pause: Callable[[float], None] = time.sleep


class Sending:
    def __init__(self, ways: Ways, state: SendingState, total: int | None) -> None:
        self._ways = ways
        self._state = state
        self._total = total
        self._batch: list[bytes] = []

    @property
    def report(self) -> SendingReport:
        return self._state.report

    def send(self, found: Iterable[Found]) -> SendingReport:
        """What was acknowledged is remembered before anything else is sent."""
        self._show()
        at: Place | None = None
        for one in found:
            line = _line(one) if isinstance(one, FoundDocument) else b""
            if self._batch and not self._fits(line):
                self._flush(at)
            at = one.place
            if isinstance(one, FoundDocument):
                self._batch.append(line)
            else:
                (self.report.refuse if one.refused else self.report.skip)(one.where, one.reason)
        self._flush(at)
        return self.report

    def _fits(self, line: bytes) -> bool:
        size = sum(len(one) for one in self._batch) + len(line)
        return len(self._batch) < MOST_IN_REQUEST and size <= MOST_REQUEST_BYTES

    def _flush(self, at: Place | None) -> None:
        batch, self._batch = self._batch, []
        tries = 0
        while batch:
            left, problem = self._sent(batch)
            tries = 1 if len(left) < len(batch) else tries + 1
            if problem is not None and (tries >= MOST_TRIES or not isinstance(problem, PASSING)):
                raise problem
            batch = left
            if problem is not None:
                self._wait(problem, tries)
        if at is not None:
            self._state = replace(self._state, place=at)
            self._ways.remember(self._state)
        self._show()

    def _sent(self, batch: Sequence[bytes]) -> tuple[list[bytes], ToolscriptError | None]:
        """Those without an answer, and why they have none."""
        try:
            answer = self._ways.send(batch)
        except ToolscriptError as error:
            return list(batch), error
        for number in sorted(answer.results):
            self.report.took(answer.results[number])
        left = [line for number, line in enumerate(batch, 1) if number not in answer.results]
        nothing_said = Unavailable("the service did not say what became of all documents") if left else None
        return left, answer.stopped or nothing_said

    def _wait(self, problem: ToolscriptError, tries: int) -> None:
        """As long as the service asks for; else longer and longer, and not all senders at the same moment."""
        told = problem.details.get("retry_after_seconds")
        usual = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
        seconds = min(LONGEST_WAIT, float(told)) if isinstance(told, int | float) else usual
        self._ways.on_wait(problem, seconds)
        self._ways.pause(seconds)

    def _show(self) -> None:
        self._ways.on_progress(Progress(TASK, self.report.done, self._total))


# What may be different a moment later.
PASSING = (Unavailable, TooManyRequests)


def _line(found: FoundDocument) -> bytes:
    return json.dumps(document_to_json(found.document), ensure_ascii=False, separators=(",", ":")).encode()
