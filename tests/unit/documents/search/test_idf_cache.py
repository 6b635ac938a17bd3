"""The IDF cache loads statistics once in a while, for each tenant separately."""

import asyncio
from dataclasses import dataclass, field

from toolscript.core.auth.model import Tenant
from toolscript.documents.model.points import TermStatistics
from toolscript.documents.retrieval import MIN_TERMS, IdfCache
from toolscript.testing.documents import MemoryTenantDocuments


@dataclass
class Counted(MemoryTenantDocuments):
    """Documents of a tenant that count how often their statistics are loaded."""

    name: str
    terms_of_chunks: list[list[int]]
    loads: int = field(default=0)

    def __post_init__(self) -> None:
        super().__init__(Tenant(self.name), {})

    async def statistics(self) -> TermStatistics:
        self.loads += 1
        await asyncio.sleep(0)
        return TermStatistics.of_chunks(self.terms_of_chunks)


async def test_concurrent_requests_share_one_load_and_later_ones_use_the_cache() -> None:
    documents, cache = Counted("acme", [[1, 2], [2]]), IdfCache()
    entries = await asyncio.gather(*(cache.of(documents) for _ in range(10)))
    again = await cache.of(documents)
    assert documents.loads == 1
    assert {entry.statistics.count(2) for entry in [*entries, again]} == {2}


async def test_an_empty_tenant_is_not_cached() -> None:
    documents, cache = Counted("acme", []), IdfCache()
    await cache.of(documents)
    documents.terms_of_chunks = [[1], [1]]
    assert (await cache.of(documents)).statistics.count(1) == 2


async def test_each_tenant_has_its_own_statistics() -> None:
    cache = IdfCache()
    first, second = Counted("a", [[1], [1], [1]]), Counted("b", [[1], [1], [2]])
    assert (await cache.of(first)).statistics.count(1) == 3
    assert (await cache.of(second)).statistics.count(1) == 2
    assert (await cache.of(first)).statistics.count(1) == 3


async def test_the_least_recently_used_tenant_is_evicted_first() -> None:
    cache = IdfCache(max_terms=MIN_TERMS)
    first, second = Counted("a", [[1, 2], [1, 2]]), Counted("b", [[1], [1]])
    await cache.of(first)
    await cache.of(second)
    await cache.of(second)
    await cache.of(first)
    assert (first.loads, second.loads) == (2, 1)


async def test_a_cancelled_request_does_not_cancel_the_shared_load() -> None:
    documents, cache = Counted("acme", [[1], [1]]), IdfCache()
    cancelled, other = asyncio.create_task(cache.of(documents)), asyncio.create_task(cache.of(documents))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert (await other).statistics.count(1) == 2
