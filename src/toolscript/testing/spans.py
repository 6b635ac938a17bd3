"""Spans, in memory: what was done, within what, and what became of it."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Fact = str | int | float | bool


@dataclass
class MemorySpan:
    """`error` is the class of what ended it, if that was an error."""

    name: str
    facts: Mapping[str, Fact]
    within: "MemorySpan | None"
    error: str = ""
    ended: bool = field(default=False)


class MemorySpans:
    def __init__(self) -> None:
        self.spans: list[MemorySpan] = []
        self._now: ContextVar[MemorySpan | None] = ContextVar("span", default=None)

    def span(self, name: str, **facts: Fact) -> AbstractContextManager[None]:
        return self._running(name, facts)

    @contextmanager
    def _running(self, name: str, facts: Mapping[str, Fact]) -> Iterator[None]:
        span = MemorySpan(name, facts, self._now.get())
        self.spans.append(span)
        before = self._now.set(span)
        try:
            yield
        except BaseException as error:
            span.error = type(error).__name__
            raise
        finally:
            self._now.reset(before)
            span.ended = True
