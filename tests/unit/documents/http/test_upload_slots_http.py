"""How many may put documents at once, and how long the others wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import httpx2
import pytest

from tests.unit.documents.http.builders import ACME, LINES, OTHER, Parts, app_of, client_of
from tests.unit.documents.http.test_put_lines_http import SOON, lines
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import TooManyRequests, Unavailable
from toolscript.documents.http.upload_limits import UploadSlots

pytestmark = pytest.mark.requirement("DOC-006")


class Sender:
    """Tells when something of it is read, and goes on once it may."""

    def __init__(self) -> None:
        self.is_read, self.may_end = asyncio.Event(), asyncio.Event()

    async def body(self) -> AsyncIterator[bytes]:
        self.is_read.set()
        yield lines(1)[0]
        await self.may_end.wait()


async def put(parts: Parts, turns: UploadSlots, senders: list[Sender], token: str, at: int) -> httpx2.Response:
    routes = replace(parts.routes(), streams=turns)
    async with client_of(app_of(routes), token) as client:
        sent = senders[at].body()
        return await client.http.put("/documents", content=sent, headers={"content-type": LINES})


async def test_a_tenant_has_a_few_turns_and_of_what_waits_nothing_is_read(parts: Parts) -> None:
    turns, senders = UploadSlots(8, 2), [Sender() for _ in range(4)]
    asked = [asyncio.create_task(put(parts, turns, senders, "token-of-acme", at)) for at in range(3)]
    async with asyncio.timeout(SOON):
        await asyncio.gather(*(one.is_read.wait() for one in senders[:2]))
        other = asyncio.create_task(put(parts, turns, senders, "token-of-other", 3))
        await senders[3].is_read.wait()
        assert not senders[2].is_read.is_set()
        senders[0].may_end.set()
        await senders[2].is_read.wait()
        for one in senders:
            one.may_end.set()
        assert [(await one).status_code for one in (*asked, other)] == [200] * 4
    assert turns.tenants_remembered == 0


@pytest.mark.parametrize(
    ("turns", "status", "code"),
    [(UploadSlots(8, 1, 0.05), 429, "RATE_LIMITED"), (UploadSlots(1, 8, 0.05), 503, "UNAVAILABLE")],
    ids=["tenant", "process"],
)
async def test_whoever_waits_too_long_is_told_when_to_come_again(
    parts: Parts, turns: UploadSlots, status: int, code: str
) -> None:
    senders = [Sender(), Sender()]
    first = asyncio.create_task(put(parts, turns, senders, "token-of-acme", 0))
    async with asyncio.timeout(SOON):
        await senders[0].is_read.wait()
        answer = await put(parts, turns, senders, "token-of-acme", 1)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.headers["retry-after"] == "10"
        assert not senders[1].is_read.is_set()
        senders[0].may_end.set()
        assert (await first).status_code == 200
    assert turns.tenants_remembered == 0


async def test_a_tenant_that_waits_for_its_own_turns_keeps_nobody_else_waiting() -> None:
    turns = UploadSlots(2, 1, 0.05)
    async with AsyncExitStack() as held:
        await held.enter_async_context(turns.turn(ACME.tenant))
        waiting = [asyncio.create_task(held.enter_async_context(turns.turn(ACME.tenant))) for _ in range(5)]
        await asyncio.sleep(0)
        await held.enter_async_context(turns.turn(OTHER.tenant))
        with pytest.raises(Unavailable):
            await held.enter_async_context(turns.turn(Tenant("third")))
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(one) for one in ended} == {TooManyRequests}
    assert turns.tenants_remembered == 0


async def test_a_turn_is_given_back_whatever_ends_it() -> None:
    turns = UploadSlots(1, 1, 0.05)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with turns.turn(ACME.tenant):
                raise ZeroDivisionError
    async with turns.turn(ACME.tenant):
        waiting = asyncio.create_task(turns.turn(ACME.tenant).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
    async with turns.turn(ACME.tenant):
        assert turns.tenants_remembered == 1
