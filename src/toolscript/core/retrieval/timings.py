"""Timings and spans of the stages of one request."""

import time
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext

_NOTHING = nullcontext()


class Stages:
    """Milliseconds by stage; a stage that runs twice counts both times."""

    def __init__(self) -> None:
        self._began = self._ended = time.perf_counter()
        self.spent: defaultdict[str, float] = defaultdict(float)

    def end(self, stage: str) -> None:
        """Assign the time since the last stage ended to this stage."""
        before, self._ended = self._ended, time.perf_counter()
        self.spent[stage] += (self._ended - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._began) * 1000


class NoSpans:
    """Tracing turned off: the same null span every time, at the cost of a call."""

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:  # noqa: ARG002
        return _NOTHING


NO_SPANS = NoSpans()
