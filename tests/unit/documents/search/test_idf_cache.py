"""How rare words are is looked up now and then, for each tenant by itself."""

import asyncio
from dataclasses import dataclass, field

from toolscript.core.auth.model import Tenant
from toolscript.documents.model.points import TermStatistics
from toolscript.documents.retrieval import MIN_TERMS, IdfCache
from toolscript.testing.documents import MemoryTenantDocuments


@dataclass
class Counted(MemoryTenantDocuments):
    """A tenant's documents that tell how often their words were counted."""

    name: str
    passages_of_words: list[list[int]]
    asked: int = field(default=0)

    def __post_init__(self) -> None:
        super().__init__(Tenant(self.name), {})

    async def statistics(self) -> TermStatistics:
        self.asked += 1
        await asyncio.sleep(0)
        return TermStatistics.of_passages(self.passages_of_words)


async def test_those_who_ask_at_once_wait_for_one_answer_and_later_ones_for_none() -> None:
    documents, memory = Counted("acme", [[1, 2], [2]]), IdfCache()
    found = await asyncio.gather(*(memory.of(documents) for _ in range(10)))
    again = await memory.of(documents)
    assert documents.asked == 1
    assert {one.statistics.count(2) for one in [*found, again]} == {2}


async def test_a_tenant_without_passages_is_asked_again() -> None:
    documents, memory = Counted("acme", []), IdfCache()
    await memory.of(documents)
    documents.passages_of_words = [[1], [1]]
    assert (await memory.of(documents)).statistics.count(1) == 2


async def test_tenants_are_remembered_apart() -> None:
    memory = IdfCache()
    first, second = Counted("a", [[1], [1], [1]]), Counted("b", [[1], [1], [2]])
    assert (await memory.of(first)).statistics.count(1) == 3
    assert (await memory.of(second)).statistics.count(1) == 2
    assert (await memory.of(first)).statistics.count(1) == 3


async def test_those_who_asked_longest_ago_are_forgotten_first() -> None:
    memory = IdfCache(max_terms=MIN_TERMS)
    first, second = Counted("a", [[1, 2], [1, 2]]), Counted("b", [[1], [1]])
    await memory.of(first)
    await memory.of(second)
    await memory.of(second)
    await memory.of(first)
    assert (first.asked, second.asked) == (2, 1)


async def test_one_who_gives_up_leaves_the_answer_to_the_others() -> None:
    documents, memory = Counted("acme", [[1], [1]]), IdfCache()
    one, other = asyncio.create_task(memory.of(documents)), asyncio.create_task(memory.of(documents))
    await asyncio.sleep(0)
    one.cancel()
    assert (await other).statistics.count(1) == 2
