"""A reindex of documents that is killed at named and at random moments beside tenants that search and write.

It kills the job, a process of `serve`, and a node of the Qdrant cluster; each time it runs the job again until it
ends, and then compares every point. By hand, in a database and a cluster of their own (removed at the end):

    python -m tests.e2e.tenants.reindexing.killed --chunks 2000 --tenants 10 --random 10
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from tests.conftest import Installation
from tests.e2e.commands import command, environment
from tests.e2e.tenants.reindexing.dying import AGAIN, STEPS
from tests.e2e.tenants.reindexing.traffic import Traffic
from tests.e2e.tenants.reindexing.world import World
from tests.e2e.tenants.service import DIMENSIONS, Service, clients, own_installation, served
from tests.support.clusters import NODES, Cluster, fresh_cluster
from tests.support.faults import relay
from toolscript.core.auth.model import Tenant
from toolscript.core.chunking import text_to_embed
from toolscript.core.retrieval.results import ChunkId
from toolscript.core.settings.service import Settings
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.qdrant.collection import QdrantDocuments, live_documents
from toolscript.server.document_index import document_layout
from toolscript.server.stores import open_stores
from toolscript.testing import HashEmbedder

KILLED = -signal.SIGKILL
MAX_RUNS = 5
MODELS = ("words", "words-too")
HASTE = ("--share", "1")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=2_000)
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--random", type=int, default=10, help="how many random moments, after all named ones")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), help="named ones")
    parser.add_argument("--searches", type=float, default=5.0, help="a second")
    parser.add_argument("--puts", type=float, default=5.0, help="a second")
    return parser.parse_args()


@dataclass
class Kills:
    """`wrong`: final differences of each kill."""

    service: Service
    cluster: Cluster
    world: World
    settings: Settings
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    longest: float = 10.0
    wrong: dict[str, list[str]] = field(default_factory=dict)
    cycles: int = 0

    async def at_step(self, step: str, traffic: Traffic, rates: tuple[float, float]) -> None:
        times = self.chance.randint(1, 3) if step in AGAIN else 1
        dying = [sys.executable, "-m", "tests.e2e.tenants.reindexing.dying", step, str(times)]
        async with traffic.running(*rates):
            process = await self._begun([*dying, *self._wanted()])
            code = await process.wait()
            await self._until_done(first=code)
        await self._compare(f"{step} ({'killed' if code == KILLED else 'ended'})")

    async def at_random(self, what: str, traffic: Traffic, rates: tuple[float, float]) -> None:
        began = time.monotonic()
        async with traffic.running(*rates):
            process = await self._begun(command(*self._wanted()))
            await asyncio.sleep(after := self.chance.uniform(1.0, self.longest))
            if what == "job":
                process.send_signal(signal.SIGKILL)
            elif what == "serve":
                os.kill(self.chance.choice(children(self.service)), signal.SIGKILL)
            else:
                node = self.chance.choice(NODES)
                self.cluster.kill(node)
                await asyncio.sleep(2.0)
                await self.cluster.start_again(node)
            code = await process.wait()
            await self._until_done(first=code)
        self.longest = max(self.longest, min(30.0, time.monotonic() - began))
        await self._compare(f"{what} after {after:.1f} s")

    def _wanted(self) -> list[str]:
        """Return the arguments for the other model, alternating."""
        return ["reindex", "documents", "--model", MODELS[(self.cycles + 1) % 2], *HASTE, "--json"]

    async def _begun(self, line: Sequence[str]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *line,
            env=environment(self.service.environment),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def _until_done(self, first: int) -> None:
        code, runs = first, 1
        while code != 0:
            assert runs < MAX_RUNS, f"it ended with {code} after {runs} runs"
            code = await (await self._begun(command(*self._wanted()))).wait()
            runs += 1

    async def _compare(self, name: str) -> None:
        """Compare documents and vectors with those that tenants have put; then drop the other version."""
        self.cycles += 1
        async with open_stores(self.settings) as stores:
            alias, layout = self.settings.qdrant_documents_alias, document_layout(self.settings)
            live = await live_documents(stores.qdrant, alias, layout)
            assert live is not None
            wrong = await self.world.wrong_in(live)
            wrong += await wrong_vectors(live, self.world)
            if live.card.model.name != MODELS[self.cycles % 2]:
                wrong.append(f"{live.card.model.name} is live")
        dropped = await (await self._begun(command("reindex", "documents", "--drop-previous"))).wait()
        if dropped:
            wrong.append("the previous one could not be dropped")
        self.wrong[name] = wrong
        sys.stderr.write(f"{name}: {len(wrong)} wrong {wrong[:3]}\n")


async def wrong_vectors(index: QdrantDocuments, world: World) -> list[str]:
    """Return points without a document, and chunks with wrong vectors."""
    embedder, wrong, points = HashEmbedder(dimensions=DIMENSIONS), list[str](), 0
    for name in world.tenants:
        shelf = index.of(Tenant(name))
        headers = await shelf.page("", 100_000, NO_FILTERS)
        ids = [ChunkId(header.key, number) for header in headers for number in range(header.passages)]
        passages, vectors = await shelf.passages(ids), await shelf.vectors(ids)
        points += len(passages)
        order = sorted(passages)
        right = await embedder.embed_texts([text_to_embed("", passages[id_]) for id_ in order])
        wrong += [
            f"{name}: {id_}"
            for id_, vector in zip(order, right, strict=True)
            if not np.allclose(vectors[id_], vector, atol=1e-4)
        ]
    held = await index.passages()
    return wrong if held == points else [*wrong, f"{held} points for {points} passages"]


def children(service: Service) -> list[int]:
    assert service.process is not None
    with open(f"/proc/{service.process.pid}/task/{service.process.pid}/children") as file:  # noqa: PTH123
        return [int(pid) for pid in file.read().split()]


@asynccontextmanager
async def installed(installation: Installation, cluster: Cluster) -> AsyncIterator[Mapping[str, str]]:
    """Yield an installation on three hosts with one port, like three machines, with two replicas."""
    async with AsyncExitStack() as stack:
        port = 0
        for node in NODES:
            to_node = relay("127.0.0.1", cluster.grpc_port(node), listens_on=f"127.0.0.{node}", own_port=port)
            port = (await stack.enter_async_context(to_node)).port
        yield {
            **installation.environment,
            "TOOLSCRIPT_QDRANT_URL": ",".join(f"http://127.0.0.{node}" for node in NODES),
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(port),
            "TOOLSCRIPT_QDRANT_REPLICAS": "2",
            "TOOLSCRIPT_DOCUMENT_SHARDS": "3",
            "TOOLSCRIPT_PROCESSES": "2",
        }


async def run(given: argparse.Namespace, installation: Installation, cluster: Cluster) -> Kills:
    names = [f"t{number:03}" for number in range(given.tenants)]
    world = World(names, given.chunks // given.tenants)
    async with AsyncExitStack() as stack:
        given_environment = await stack.enter_async_context(installed(installation, cluster))
        # On a thread: it reaches the nodes through relays of this event loop.
        serving = served(Installation(dict(given_environment)))
        service, issuer = await asyncio.to_thread(serving.__enter__)
        try:
            settings = Installation(dict(service.environment)).settings
            await world.load(settings)
            client = await stack.enter_async_context(clients(service.url, 64))
            tokens = {name: issuer.token(name, exp=int(time.time()) + 14_400) for name in names}
            traffic = Traffic(client, tokens, world)
            kills = Kills(service, cluster, world, settings)
            rates = given.searches, given.puts
            for step in given.steps:
                await kills.at_step(step, traffic, rates)
            for number in range(given.random):
                await kills.at_random(("job", "serve", "node")[number % 3], traffic, rates)
            return kills
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)


def main() -> None:
    value = arguments()
    with own_installation() as installation, fresh_cluster() as cluster:
        kills = asyncio.run(run(value, installation, cluster))
    bad = {name: wrong for name, wrong in kills.wrong.items() if wrong}
    sys.stdout.write(f"{len(kills.wrong)} kills, {len(bad)} ended with something wrong: {bad}\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
