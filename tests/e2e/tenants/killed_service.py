"""The service is killed while documents of many passages are put and removed; clients try again.

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
from tests.e2e.tenants import standing
from tests.e2e.tenants.service import Service, clients, own_installation, served
from tests.e2e.tenants.two_writers import text
from tests.support.token_issuer import Issuer
from toolscript.core.settings.service import Settings

TENANTS = ("first", "second", "third")
DOCUMENTS = 4
# Passages of a document, about.
LENGTHS = (1, 2, 30, 120)

Key = tuple[str, str]


@dataclass
class Clients:
    """Each tenant has a client that sends one request at a time, and again until it is answered."""

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
        """Nobody is killed: it is seen how long it takes, and so when a kill is worth it."""
        began = time.monotonic()
        async with clients(self.service.url, len(TENANTS)) as client:
            wanted = {f"doc-{number}": text(self.chance, self.lengths[number]) for number in range(DOCUMENTS)}
            assert all(await asyncio.gather(*(self._send(client, name, wanted) for name in TENANTS)))
        self.max_seconds = time.monotonic() - began
        await self._look()

    async def round(self) -> None:
        """All of them write, the service is killed, what was not answered is sent again."""
        wanted = {name: self._wanted() for name in TENANTS}
        async with clients(self.service.url, len(TENANTS)) as client:
            sent = [asyncio.create_task(self._send(client, name, wanted[name])) for name in TENANTS]
            await asyncio.sleep(self.chance.random() * self.max_seconds)
            await asyncio.to_thread(self.service.kill)
            answered = await asyncio.gather(*sent)
        self.interrupted += answered.count(False)
        await asyncio.to_thread(self.service.start)
        found = await standing.everything(self.settings)
        self.halves += len({problem.partition(": ")[0] for problem in standing.problems(found)})
        self._note(standing.orphans(found), "killed")
        async with clients(self.service.url, len(TENANTS)) as client:
            for name, was_answered in zip(TENANTS, answered, strict=True):
                assert was_answered or await self._send(client, name, wanted[name])
        await self._look()

    def _wanted(self) -> dict[str, str | None]:
        """Documents with their texts; None: to be removed. Now and then all are removed at once."""
        ids = [f"doc-{number}" for number in range(DOCUMENTS)]
        if self.chance.random() < 0.2:
            return dict.fromkeys(ids)
        return {id_: text(self.chance, self.chance.choice(self.lengths)) for id_ in ids}

    async def _send(self, client: httpx2.AsyncClient, name: str, wanted: Mapping[str, str | None]) -> bool:
        headers = {"authorization": f"Bearer {self.issuer.token(name)}"}
        put = [{"id": id_, "text": said} for id_, said in wanted.items() if said is not None]
        asked = ("PUT", {"documents": put}) if put else ("DELETE", {"ids": list(wanted)})
        try:
            answer = await client.request(asked[0], "/documents", json=asked[1], headers=headers)
        except httpx2.TransportError:
            return False
        assert answer.status_code == 200, answer.text
        self.acknowledged |= {(name, id_): said for id_, said in wanted.items()}
        return True

    async def _look(self) -> None:
        found = await standing.everything(self.settings)
        self._note(standing.problems(found), "tried again")
        there = {(tenant, one.head["doc_id"]): one.text for (tenant, _), one in found.items() if one.head}
        expected = {key: said for key, said in self.acknowledged.items() if said is not None}
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
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--kills", type=int, default=30)
    asked.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = asked.parse_args()
    with own_installation() as installation:
        found = killed(installation, given.kills, given.seed)
    sys.stdout.write("\n".join(found.wrong[:20]))
    sys.stdout.write(
        f"\n{given.kills} kills, {found.interrupted} requests of {given.kills * len(TENANTS)} were interrupted, "
        f"{found.halves} times a tenant had something half; then all was sent again, "
        f"seed {given.seed}: {len(found.wrong)} problems\n"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
