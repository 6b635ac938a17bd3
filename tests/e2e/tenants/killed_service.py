"""The service is killed while documents of many chunks are put and removed; clients retry.

By hand, on the engines of the environment, in a database and under aliases of its own:

    python -m tests.e2e.tenants.killed_service --kills 30
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx2

from tests.conftest import Installation
from tests.e2e.tenants import stored_points
from tests.e2e.tenants.service import Service, clients, own_installation, served
from tests.e2e.tenants.two_writers import text
from tests.support.token_issuer import Issuer
from toolscript.core.settings.service import Settings

TENANTS = ("first", "second", "third")
DOCUMENTS = 4
# Approximate chunks of a document.
LENGTHS = (1, 2, 30, 120)

Key = tuple[str, str]


@dataclass
class Clients:
    """Each tenant has a client that sends one request at a time, and retries until it succeeds."""

    service: Service
    issuer: Issuer
    settings: Settings
    chance: random.Random
    lengths: Sequence[int] = LENGTHS
    acknowledged: dict[Key, str | None] = field(default_factory=dict)
    interrupted: int = 0
    halves: int = 0
    max_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    async def first_round(self) -> None:
        """Run without a kill, to measure how long a round takes."""
        began = time.monotonic()
        async with clients(self.service.url, len(TENANTS)) as client:
            expected = {f"doc-{number}": text(self.chance, self.lengths[number]) for number in range(DOCUMENTS)}
            assert all(await asyncio.gather(*(self._send(client, name, expected) for name in TENANTS)))
        self.max_seconds = time.monotonic() - began
        await self._look()

    async def round(self) -> None:
        """Let all clients write, kill the service, and resend unanswered requests."""
        expected = {name: self._wanted() for name in TENANTS}
        async with clients(self.service.url, len(TENANTS)) as client:
            sent = [asyncio.create_task(self._send(client, name, expected[name])) for name in TENANTS]
            await asyncio.sleep(self.chance.random() * self.max_seconds)
            await asyncio.to_thread(self.service.kill)
            answered = await asyncio.gather(*sent)
        self.interrupted += answered.count(False)
        await asyncio.to_thread(self.service.start)
        result = await stored_points.everything(self.settings)
        self.halves += len({problem.partition(": ")[0] for problem in stored_points.problems(result)})
        self._note(stored_points.orphans(result), "killed")
        async with clients(self.service.url, len(TENANTS)) as client:
            for name, was_answered in zip(TENANTS, answered, strict=True):
                assert was_answered or await self._send(client, name, expected[name])
        await self._look()

    def _wanted(self) -> dict[str, str | None]:
        """Return documents with their texts; None removes one. Sometimes all are removed at once."""
        ids = [f"doc-{number}" for number in range(DOCUMENTS)]
        if self.chance.random() < 0.2:
            return dict.fromkeys(ids)
        return {id_: text(self.chance, self.chance.choice(self.lengths)) for id_ in ids}

    async def _send(self, client: httpx2.AsyncClient, name: str, wanted: Mapping[str, str | None]) -> bool:
        headers = {"authorization": f"Bearer {self.issuer.token(name)}"}
        put = [{"id": id_, "text": message} for id_, message in wanted.items() if message is not None]
        requests = ("PUT", {"documents": put}) if put else ("DELETE", {"ids": list(wanted)})
        try:
            answer = await client.request(requests[0], "/documents", json=requests[1], headers=headers)
        except httpx2.TransportError:
            return False
        assert answer.status_code == 200, answer.text
        self.acknowledged |= {(name, id_): message for id_, message in wanted.items()}
        return True

    async def _look(self) -> None:
        result = await stored_points.everything(self.settings)
        self._note(stored_points.problems(result), "tried again")
        there = {(tenant, item.head["doc_id"]): item.text for (tenant, _), item in result.items() if item.head}
        expected = {key: message for key, message in self.acknowledged.items() if message is not None}
        apart = sorted(key for key in there.keys() | expected if there.get(key) != expected.get(key))
        self._note([f"{key}: is not what was acknowledged" for key in apart], "tried again")

    def _note(self, problems: list[str], when: str) -> None:
        self.wrong += [f"{when}: {problem}" for problem in problems]


def killed(installation: Installation, kills: int, seed: int, lengths: Sequence[int] = LENGTHS) -> Clients:
    with served(installation) as (service, issuer):
        writing = Clients(service, issuer, installation.settings, random.Random(seed), lengths)
        asyncio.run(_rounds(writing, kills))
        return writing


async def _rounds(writing: Clients, kills: int) -> None:
    await writing.first_round()
    for number in range(kills):
        await writing.round()
        sys.stderr.write(f"kill {number + 1} of {kills}: {len(writing.wrong)} problems\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    with own_installation() as installation:
        result = killed(installation, arguments.kills, arguments.seed)
    sys.stdout.write("\n".join(result.wrong[:20]))
    sys.stdout.write(
        f"\n{arguments.kills} kills, {result.interrupted} requests of {arguments.kills * len(TENANTS)} "
        "were interrupted, "
        f"{result.halves} times a tenant had something half; then all was sent again, "
        f"seed {arguments.seed}: {len(result.wrong)} problems\n"
    )
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
