"""Tenants that write continuously, and their expected final state."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from tests.e2e.tenants.requests_of_tenants import Ask
from tests.e2e.tenants.session import Session
from tests.e2e.tenants.world import NEW_IDS, Member

AT_ONCE_WHEN_FILLING = 4


class Writers:
    """Each tenant has one write at a time, so that its state is known; tenants write concurrently."""

    def __init__(self, session: Session, members: Sequence[Member], seed: int) -> None:
        self._session = session
        self._members = members
        self._chance = random.Random(seed)
        self._writing = {member.name: asyncio.Lock() for member in members}
        self.expected: dict[str, dict[str, int]] = {member.name: {} for member in members}
        self.done: Counter[str] = Counter()
        self._stopped = False

    async def fill(self) -> None:
        waiting = list(self._members)

        async def work() -> None:
            while waiting:
                member = waiting.pop()
                await self._put(member, member.ids, version=0)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE_WHEN_FILLING):
                group.create_task(work())

    async def write_until_stopped(self, at_once: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._write())

    def stop(self) -> None:
        self._stopped = True

    async def _write(self) -> None:
        while not self._stopped:
            member = self._chance.choice(self._members)
            async with self._writing[member.name]:
                await self._change(member)

    async def _change(self, member: Member) -> None:
        held = self.expected[member.name]
        chosen = self._chance.random()
        if chosen < 0.35:
            await self._put(member, [self._chance.choice(NEW_IDS)], self._version())
        elif chosen < 0.7 or not held:
            some = self._chance.sample(member.ids, 2)
            await self._put(member, some, self._version())
        else:
            some = self._chance.sample(sorted({*held, "doc-0"}), 1)
            await self._remove(member, some)

    def _version(self) -> int:
        return self._chance.randrange(1, 10**6)

    async def _put(self, member: Member, ids: Sequence[str], version: int) -> None:
        documents = [member.document(id_, version) for id_ in ids]
        ask = Ask("put", {"documents": documents}, "PUT", "/documents")
        counts = (await self._session.send(member, ask)).end.get("counts", {})
        if counts.get("created", 0) + counts.get("updated", 0) != len(ids):
            self._session.counts.wrong.append(f"put {ids} of {member.name}: {counts}")
            self._session.counts.wrong_count += 1
        self.expected[member.name] |= dict.fromkeys(ids, version)
        self.done["documents put"] += len(ids)

    async def _remove(self, member: Member, ids: Sequence[str]) -> None:
        """Remove ids that all tenants have: those of the others must remain."""
        held = self.expected[member.name]
        item = f"/documents/{quote(ids[0], safe='')}"
        alone = self._chance.random() < 0.5
        ask = (
            Ask("delete", None, "DELETE", item)
            if alone
            else Ask("delete", {"ids": list(ids)}, "DELETE", "/documents")
        )
        deleted = (await self._session.send(member, ask)).end.get("deleted")
        if deleted != [id_ for id_ in ids if id_ in held]:
            self._session.counts.wrong.append(f"delete {ids} of {member.name}: {deleted}")
            self._session.counts.wrong_count += 1
        for id_ in ids:
            held.pop(id_, None)
        self.done["documents removed"] += len(ids)


async def differences(session: Session, writers: Writers, members: Sequence[Member]) -> list[str]:
    """Return tenants whose documents differ from the expected ones."""
    result = []
    for member in members:
        held, expected = await session.holdings(member), writers.expected[member.name]
        if held != expected:
            apart = sorted(held.items() ^ expected.items())
            result.append(f"{member.name} has {len(held)} documents, not {len(expected)}: {apart[:6]}")
    return result
