"""A tenant's answers are the same with and without another tenant, to the last digit.

By hand, on the engines of the environment, in a database and under aliases of its own:

    python -m tests.e2e.tenants.same_answers --sizes 3,300,3000 --neighbour 30000
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import httpx2

from tests.conftest import Installation
from tests.e2e.tenants.questions import answers, difference, documents
from tests.e2e.tenants.service import Service, clients, own_installation, served
from tests.support.token_issuer import Issuer
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.settings.service import Settings

AT_ONCE = 200
LOOK_EVERY_SECONDS = 0.2
PATIENCE_SECONDS = 600.0
NEIGHBOUR = "neighbour"
SHOWN = 40


@dataclass
class Comparison:
    """Compares responses to tenants of these sizes alone with later responses."""

    service: Service
    issuer: Issuer
    settings: Settings
    sizes: Sequence[int]
    thorough: bool = True
    filled: list[int] = field(default_factory=list)
    first: dict[int, list[str]] = field(default_factory=dict)
    compared: int = 0
    apart: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    async def fill(self) -> None:
        """Fill the tenants; query each before the next one exists."""
        for size in self.sizes:
            await self._put(self._name(size), documents(size, seed=size))
            self.filled.append(size)
            await self._compare(f"beside the tenant of {size}")

    async def in_all_states(self, state: str) -> None:
        """Compare with warm caches, and after a restart with cold ones."""
        if self.thorough:
            await self._compare(f"{state}, warm")
        await until_settled(self.settings)
        await self._compare(f"{state}, settled")
        if not self.thorough and NEIGHBOUR not in state:
            return
        await asyncio.to_thread(self.service.restart)
        await self._compare(f"{state}, started anew")

    async def neighbour_comes(self, count: int) -> None:
        """Compare also while the neighbour writes."""
        everything = documents(count, seed=1, reverse=True)
        await self._put(NEIGHBOUR, itertools.islice(everything, count // 2))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._put(NEIGHBOUR, everything))
            group.create_task(self._compare("while the neighbour writes"))

    async def neighbour_goes(self, count: int) -> None:
        async with clients(self.service.url, 1) as client:
            for start in range(0, count, AT_ONCE):
                ids = [f"doc-{number}" for number in range(start, min(count, start + AT_ONCE))]
                answer = await client.request(
                    "DELETE", "/documents", json={"ids": ids}, headers=self._headers(NEIGHBOUR)
                )
                assert answer.json()["deleted"] == ids, answer.text

    async def _put(self, name: str, given: Iterable[object]) -> None:
        async with clients(self.service.url, 1) as client:
            listed = iter(given)
            while some := list(itertools.islice(listed, AT_ONCE)):
                body = "\n".join(json.dumps(item) for item in some).encode()
                headers = {**self._headers(name), "content-type": "application/x-ndjson"}
                answer = await client.put("/documents", content=body, headers=headers)
                assert json.loads(answer.text.splitlines()[-1])["counts"]["created"] == len(some), answer.text

    async def _compare(self, state: str) -> None:
        async with clients(self.service.url, 1) as client:
            for size in self.filled:
                await self._compare_one(client, size, state)

    async def _compare_one(self, client: httpx2.AsyncClient, size: int, state: str) -> None:
        ids, texts = [f"doc-{number}" for number in range(3)], 4 if self.thorough else 1
        value = await answers(client, self._token(self._name(size)), ids, texts)
        first = self.first.setdefault(size, value)
        self.compared += len(value)
        for before, now in itertools.zip_longest(first, value, fillvalue=""):
            if before != now:
                self.apart[f"{size} documents, {state}"] += 1
                self.differences.append(f"{size} documents, {state}: {difference(before, now)}")

    def _name(self, size: int) -> str:
        return f"has-{size}"

    def _token(self, name: str) -> str:
        return self.issuer.token(name)

    def _headers(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token(name)}"}


async def until_settled(settings: Settings) -> None:
    """Wait until the engine has built graphs and merged segments."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    async with open_qdrant(settings.qdrant_url, settings.qdrant_grpc_port) as engine:
        request = wire.GetCollectionInfoRequest(collection_name=settings.qdrant_documents_alias)
        while (await engine.collections.Get(request)).result.status != wire.CollectionStatus.Green:
            assert time.monotonic() < ends_at, "the engine does not come to rest"
            await asyncio.sleep(LOOK_EVERY_SECONDS)


async def compare(comparison: Comparison, neighbour: int) -> None:
    await comparison.fill()
    await comparison.in_all_states("alone")
    await comparison.neighbour_comes(neighbour)
    await comparison.in_all_states(f"beside a {NEIGHBOUR} of {neighbour} documents")
    await comparison.neighbour_goes(neighbour)
    await comparison.in_all_states("alone again")


def compared(
    installation: Installation, sizes: Sequence[int], neighbour: int, dimensions: int, *, thorough: bool = True
) -> Comparison:
    """Compare. Without `thorough`: not in every state, and with one restart."""
    with served(installation, dimensions=dimensions) as (service, issuer):
        comparison = Comparison(service, issuer, installation.settings, sizes, thorough)
        asyncio.run(compare(comparison, neighbour))
        return comparison


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="3,300,3000", help="documents of the tenants that are compared")
    parser.add_argument("--neighbour", type=int, default=30_000, help="documents of the other tenant")
    parser.add_argument("--dimensions", type=int, default=384)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with own_installation() as installation:
        result = compared(installation, sizes, arguments.neighbour, arguments.dimensions)
    output = [*result.differences[:SHOWN], *(f"{state}: {count}" for state, count in result.apart.items())]
    sys.stdout.write("\n".join(output))
    sys.stdout.write(f"\n{result.compared} answers compared, {len(result.differences)} are not the same\n")
    return 1 if result.differences else 0


if __name__ == "__main__":
    sys.exit(main())
