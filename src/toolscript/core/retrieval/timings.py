"""Timings and spans of the stages of one request."""

import time
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext

_NOTHING = nullcontext()


class Stages:
    """Milliseconds by stage; a stage that came twice took both times."""

    def __init__(self) -> None:
        self._began = self._ended = time.perf_counter()
        self.spent: defaultdict[str, float] = defaultdict(float)

    def end(self, stage: str) -> None:
        """What was done since the last stage ended was this one."""
        before, self._ended = self._ended, time.perf_counter()
        self.spent[stage] += (self._ended - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._began) * 1000


class NoSpans:
    """One span that is none, handed out again and again: it costs a call."""

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:  # noqa: ARG002
        return _NOTHING


NO_SPANS = NoSpans()
