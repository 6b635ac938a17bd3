"""Concurrent requests of tenants, and their results."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.e2e.tenants.checking import Verdict, judged
from tests.e2e.tenants.requests_of_tenants import FOUND, REFUSED, SINGLE, Ask
from tests.e2e.tenants.world import WORDS, Member

WALK_SHARE, TRIED_CURSOR_SHARE, BAD_TOKEN_SHARE = 0.06, 0.04, 0.02
REMEMBERED_CURSORS = 200
KEPT = 40

Json = dict[str, Any]


@dataclass
class Counts:
    asked: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    hits_by_kind: Counter[str] = field(default_factory=Counter)
    foreign: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wrong_by_kind: Counter[str] = field(default_factory=Counter)
    foreign_count: int = 0
    wrong_count: int = 0
    slowest: float = 0.0

    def note(self, ask: Ask, status: int, verdict: Verdict, took: float) -> None:
        self.asked[ask.kind] += 1
        self.statuses[status] += 1
        self.hits_by_kind[ask.kind] += len(verdict.hits)
        self.foreign_count += len(verdict.foreign)
        self.wrong_count += len(verdict.wrong)
        self.wrong_by_kind[ask.kind] += len(verdict.wrong)
        self.foreign += verdict.foreign[: KEPT - len(self.foreign)]
        self.wrong += verdict.wrong[: KEPT - len(self.wrong)]
        self.slowest = max(self.slowest, took)

    @property
    def total(self) -> int:
        return sum(self.asked.values())


@dataclass(frozen=True)
class _Kept:
    """A cursor of a tenant, with the request that it continues."""

    member: Member
    body: Json
    cursor: str


class Session:
    """`bad`: tokens that must be refused."""

    def __init__(
        self, client: httpx2.AsyncClient, members: Sequence[Member], bad: Sequence[str], seed: int
    ) -> None:
        self._client = client
        self._members = members
        self._bad = bad
        self._chance = random.Random(seed)
        self._cursors: deque[_Kept] = deque(maxlen=REMEMBERED_CURSORS)
        self.counts = Counts()

    async def send(self, member: Member, ask: Ask) -> Verdict:
        token = member.token if ask.token is None else ask.token
        headers = {**ask.headers, **({"authorization": f"Bearer {token}"} if token else {})}
        began = time.perf_counter()
        answer = await self._client.request(ask.method, ask.path, json=ask.body, headers=headers)
        verdict = judged(member, ask, answer)
        self.counts.note(ask, answer.status_code, verdict, time.perf_counter() - began)
        return verdict

    async def ask_until(self, total: int, at_once: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._ask_until(total))

    async def _ask_until(self, total: int) -> None:
        makes = [make for weight, make in SINGLE for _ in range(weight)]
        while self.counts.total < total:
            member, other = self._two()
            chosen = self._chance.random()
            if chosen < WALK_SHARE:
                await self._walk(member)
            elif chosen < WALK_SHARE + TRIED_CURSOR_SHARE and self._cursors:
                await self._try_cursor()
            elif chosen < WALK_SHARE + TRIED_CURSOR_SHARE + BAD_TOKEN_SHARE:
                await self._bad_token(member)
            else:
                await self.send(member, self._chance.choice(makes)(member, other, self._chance))

    def _two(self) -> tuple[Member, Member]:
        member, other = self._chance.sample(self._members, 2)
        return member, other

    async def _walk(self, member: Member) -> None:
        """Follow the cursor to its end: no duplicates, and no documents of others."""
        by_filters = self._chance.random() < 0.5
        kind = "cursor, by filters" if by_filters else "cursor, by rank"
        body: Json = {"top_k": self._chance.choice([2, 5, 50]), "cursor": "*"}
        body |= {} if by_filters else {"query": " ".join(self._chance.sample(WORDS, 2))}
        seen: list[str] = []
        while body["cursor"]:
            verdict = await self.send(member, Ask(kind, body))
            seen += (hit["doc_id"] for hit in verdict.hits)
            following = verdict.end.get("next_cursor")
            if following:
                self._cursors.append(_Kept(member, body, following))
            body = {**body, "cursor": following}
        if len(set(seen)) < len(seen):
            self.counts.wrong_count += 1
            self.counts.wrong.append(f"{kind}: a document came twice: {sorted(seen)}")

    async def _try_cursor(self) -> None:
        """Use the cursor of another tenant, with the search that it belongs to."""
        kept = self._chance.choice(self._cursors)
        thief = self._chance.choice(self._members)
        if thief is not kept.member:
            body = {**kept.body, "cursor": kept.cursor}
            await self.send(thief, Ask("cursor of another", body, statuses=REFUSED))

    async def _bad_token(self, member: Member) -> None:
        ask = Ask(
            "bad token", {"query": member.marker}, statuses=frozenset({401}), token=self._chance.choice(self._bad)
        )
        await self.send(member, ask)

    async def holdings(self, member: Member) -> dict[str, int]:
        """Return all documents of a tenant by id, with their versions."""
        body: Json = {"top_k": 200, "cursor": "*", "include_snippets": False}
        held: dict[str, int] = {}
        while body["cursor"]:
            verdict = await self.send(member, Ask("everything", body, statuses=FOUND))
            held |= {hit["doc_id"]: hit["metadata"]["version"] for hit in verdict.hits}
            body = {**body, "cursor": verdict.end.get("next_cursor")}
        return held
