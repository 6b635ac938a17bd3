"""Several clients write one document at the same moment, and some remove it: in the end one version stands, or none.

By hand, on the engines of the environment, in a database and under aliases of its own:

    python -m tests.whole.tenants.two_writers --rounds 300
"""

import argparse
import asyncio
import random
import sys

import httpx2

from tests.conftest import Installation
from tests.token_issuer import Issuer
from tests.whole.tenants import standing
from tests.whole.tenants.service import clients, own_installation, served
from toolscript.settings import Settings

LENGTHS = (1, 1, 2, 3, 7, 20, 40)
LETTERS_OF_A_PASSAGE = 1_200


def text(chance: random.Random, passages: int) -> str:
    """Of about so many passages."""
    word = "".join(chance.choices("bcdfgklmnprstv", k=7))
    return f"{word} " * (passages * LETTERS_OF_A_PASSAGE // (len(word) + 1))


class Writers:
    """`documents` are written by nobody else; each round all of them at once, by two clients or three."""

    def __init__(self, client: httpx2.AsyncClient, issuer: Issuer, documents: int, *, remove: bool, seed: int) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {issuer.token('both')}"}
        self._chance = random.Random(seed)
        self._documents = documents
        self._remove = remove
        self.texts: dict[str, list[str]] = {}

    async def round(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._documents):
                id_ = f"doc-{number}"
                for _ in range(self._chance.choice([2, 2, 3])):
                    said = text(self._chance, self._chance.choice(LENGTHS))
                    self.texts.setdefault(id_, []).append(said.strip())
                    group.create_task(self._put(id_, said, self._chance.random() * 0.03))
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
        found = await standing.everything(settings)
        wrong = standing.problems(found)
        for one in found.values():
            id_ = one.head.get("doc_id", "")
            if id_ and one.text.strip() not in self.texts[id_]:
                wrong.append(f"{id_}: nobody has put what stands there")
        if not self._remove and len(found) < self._documents:
            wrong.append(f"{len(found)} documents of {self._documents} stand")
        return wrong


async def write(url: str, issuer: Issuer, settings: Settings, given: argparse.Namespace) -> list[str]:
    async with clients(url, 40) as client:
        writers = Writers(client, issuer, given.documents, remove=given.remove, seed=given.seed)
        for number in range(given.rounds):
            await writers.round()
            if wrong := await writers.amiss(settings):
                return [f"round {number + 1}: {one}" for one in wrong]
    return []


def written(installation: Installation, given: argparse.Namespace) -> list[str]:
    with served(installation, TOOLSCRIPT_PROCESSES="2") as (service, issuer):
        return asyncio.run(write(service.url, issuer, installation.settings, given))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=300)
    asked.add_argument("--documents", type=int, default=4, help="that are written in each round, each by several")
    asked.add_argument("--remove", action="store_true", help="some clients remove them at the same time")
    asked.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = asked.parse_args()
    with own_installation() as installation:
        wrong = written(installation, given)
    sys.stdout.write("\n".join(wrong[:20]))
    sys.stdout.write(f"\n{given.rounds} rounds, seed {given.seed}: {len(wrong)} documents are not whole\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
