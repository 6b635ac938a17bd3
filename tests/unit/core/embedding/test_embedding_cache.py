"""A caching embedder: each query is embedded once, failures are not cached, and the size is limited."""

import asyncio

import pytest

from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.retrieval.model import Vector
from toolscript.testing import HashEmbedder


class SlowEmbedder(HashEmbedder):
    """An embedder that waits until the gate is open, and fails while it is `down`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.down = False

    async def embed_query(self, text: str) -> Vector:
        self.queries_embedded += 1
        await self.gate.wait()
        if self.down:
            raise EmbedderUnavailable("down")
        return self._embed(text)


@pytest.fixture
async def slow() -> SlowEmbedder:
    return SlowEmbedder()


async def all_started(count: int = 1) -> None:
    """Let all tasks run that can."""
    for _ in range(count * 5):
        await asyncio.sleep(0)


@pytest.mark.states("S3-219")
async def test_a_repeated_query_is_not_embedded_again() -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, size=10)
    first, second = await cached.embed_query("read"), await cached.embed_query("read")
    assert (first == second).all()
    assert inner.queries_embedded == 1
    assert cached.model == inner.model


async def test_a_group_cannot_tell_what_another_one_has_sent() -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, size=10)
    for embedder in (cached, cached.within(("red",)), cached.within(("blue",)), cached.within(("red",))):
        assert ((await embedder.embed_query("read")) == (await cached.embed_query("read"))).all()
    assert inner.queries_embedded == 3


async def test_queries_that_differ_in_one_letter_are_different() -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, size=10)
    for text in ("read", "Read", "read ", "read"):
        await cached.embed_query(text)
    assert inner.queries_embedded == 3


@pytest.mark.requirement("EC-006")
async def test_concurrent_requests_for_a_query_embed_it_once(slow: SlowEmbedder) -> None:
    cached = CachedEmbedder(slow, size=10)
    requests = [asyncio.ensure_future(cached.embed_query("read")) for _ in range(20)]
    await all_started()
    slow.gate.set()
    vectors = await asyncio.gather(*requests)
    assert slow.queries_embedded == 1
    assert all((vector == vectors[0]).all() for vector in vectors)


async def test_the_least_recently_used_query_is_evicted_first() -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, size=2)
    for text in ("a", "b", "a", "c"):
        await cached.embed_query(text)
    assert inner.queries_embedded == 3
    await cached.embed_query("a")
    assert inner.queries_embedded == 3
    await cached.embed_query("b")
    assert inner.queries_embedded == 4


async def test_more_concurrent_queries_than_fit_are_all_answered(slow: SlowEmbedder) -> None:
    cached = CachedEmbedder(slow, size=1)
    requests = [asyncio.ensure_future(cached.embed_query(f"query {number}")) for number in range(5)]
    await all_started()
    slow.gate.set()
    assert len(await asyncio.gather(*requests)) == 5
    assert len(cached._entries) == 1


async def test_a_failure_reaches_all_callers_and_is_not_cached(slow: SlowEmbedder) -> None:
    cached = CachedEmbedder(slow, size=10)
    slow.down = True
    requests = [asyncio.ensure_future(cached.embed_query("read")) for _ in range(3)]
    await all_started()
    slow.gate.set()
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {EmbedderUnavailable}
    await all_started()
    slow.down = False
    assert (await cached.embed_query("read")).shape == (64,)
    assert slow.queries_embedded == 2


async def test_a_cancelled_caller_does_not_affect_the_others(slow: SlowEmbedder) -> None:
    cached = CachedEmbedder(slow, size=10)
    first = asyncio.ensure_future(cached.embed_query("read"))
    second = asyncio.ensure_future(cached.embed_query("read"))
    await all_started()
    first.cancel()
    await all_started()
    slow.gate.set()
    assert (await second).shape == (64,)
    assert first.cancelled()
    assert slow.queries_embedded == 1


async def test_a_query_without_callers_is_cancelled_and_started_again_by_the_next(
    slow: SlowEmbedder,
) -> None:
    cached = CachedEmbedder(slow, size=10)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await cached.embed_query("read")
    slow.gate.set()
    assert (await cached.embed_query("read")).shape == (64,)
    assert slow.queries_embedded == 3


async def test_passages_are_not_cached() -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, size=10)
    await cached.embed_texts(["a", "b"])
    await cached.embed_texts(["a", "b"])
    assert inner.texts_embedded == 4
