"""Concurrent clients write or remove one document: one complete version remains, or none.

By hand, on the engines of the environment, in a database and under aliases of its own:

    python -m tests.e2e.tenants.two_writers --rounds 300
"""

import argparse
import asyncio
import random
import sys
from dataclasses import dataclass

import httpx2

from tests.e2e.tenants import stored_points
from tests.e2e.tenants.service import clients, own_installation, served
from tests.support.token_issuer import Issuer
from toolscript.core.settings.service import Settings

LENGTHS = (1, 1, 2, 3, 7, 20, 40)
CHUNK_LETTERS = 1_200
TENANT = "both"


@dataclass(frozen=True)
class Size:
    """`documents`: written in each round, each by several clients."""

    rounds: int = 300
    documents: int = 4
    remove: bool = False
    seed: int = 7


def text(chance: random.Random, passages: int) -> str:
    """Return a text of about so many chunks."""
    word = "".join(chance.choices("bcdfgklmnprstv", k=7))
    return f"{word} " * (passages * CHUNK_LETTERS // (len(word) + 1))


class Writers:
    """Writes all documents concurrently in each round, each by two or three clients."""

    def __init__(self, client: httpx2.AsyncClient, issuer: Issuer, size: Size) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {issuer.token(TENANT)}"}
        self._chance = random.Random(size.seed)
        self._documents = size.documents
        self._remove = size.remove
        self.texts: dict[str, list[str]] = {}

    async def round(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._documents):
                id_ = f"doc-{number}"
                for _ in range(self._chance.choice([2, 2, 3])):
                    message = text(self._chance, self._chance.choice(LENGTHS))
                    self.texts.setdefault(id_, []).append(message.strip())
                    group.create_task(self._put(id_, message, self._chance.random() * 0.03))
                if self._remove and self._chance.random() < 0.5:
                    group.create_task(self._delete(id_, self._chance.random() * 0.06))

    async def _put(self, id_: str, said: str, after: float) -> None:
        await asyncio.sleep(after)
        body = {"documents": [{"id": id_, "text": said}]}
        answer = await self._client.put("/documents", json=body, headers=self._headers)
        assert answer.status_code == 200, answer.text

    async def _delete(self, id_: str, after: float) -> None:
        await asyncio.sleep(after)
        answer = await self._client.delete(f"/documents/{id_}", headers=self._headers)
        assert answer.status_code == 200, answer.text

    async def amiss(self, settings: Settings) -> list[str]:
        result = await stored_points.everything(settings)
        wrong = stored_points.problems(result)
        of_ours = [item for (tenant, _), item in result.items() if tenant == TENANT]
        for item in of_ours:
            id_ = item.head.get("doc_id", "")
            if id_ and item.text.strip() not in self.texts[id_]:
                wrong.append(f"{id_}: nobody has put what stands there")
        if not self._remove and len(of_ours) < self._documents:
            wrong.append(f"{len(of_ours)} documents of {self._documents} stand")
        return wrong


async def write(url: str, issuer: Issuer, settings: Settings, size: Size) -> list[str]:
    """Return the incomplete documents after the first round that has any."""
    async with clients(url, 40) as client:
        writers = Writers(client, issuer, size)
        for number in range(size.rounds):
            await writers.round()
            if wrong := await writers.amiss(settings):
                return [f"round {number + 1}: {item}" for item in wrong]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--documents", type=int, default=4, help="that are written in each round, each by several")
    parser.add_argument("--remove", action="store_true", help="some clients remove them at the same time")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    size = Size(arguments.rounds, arguments.documents, arguments.remove, arguments.seed)
    with own_installation() as fresh, served(fresh, TOOLSCRIPT_PROCESSES="2") as (service, issuer):
        wrong = asyncio.run(write(service.url, issuer, fresh.settings, size))
    sys.stdout.write("\n".join(wrong[:20]))
    sys.stdout.write(f"\n{arguments.rounds} rounds, seed {arguments.seed}: {len(wrong)} problems\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
