"""Doubles of a reranker and of spans, for tests."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from toolscript.core.retrieval.terms import terms_of_word, without_stop_words, words_of

Fact = str | int | float | bool


class WordReranker:
    """Scores by shared stems. Counts the scored texts."""

    def __init__(self, name: str = "words") -> None:
        self._name = name
        self.texts_scored = 0

    @property
    def name(self) -> str:
        return self._name

    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.texts_scored += len(passages)
        query_stems = _stems(query)
        return [len(query_stems & _stems(passage)) / max(len(query_stems), 1) for passage in passages]


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))


@dataclass
class MemorySpan:
    """`error` is the class of the exception that ended it, if any."""

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
