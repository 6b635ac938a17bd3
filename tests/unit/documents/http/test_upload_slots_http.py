"""How many uploads run at once, and how long others wait."""

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
    """A client: `is_read` is set when its body is read, and the body ends after `may_end`."""

    def __init__(self) -> None:
        self.is_read, self.may_end = asyncio.Event(), asyncio.Event()

    async def body(self) -> AsyncIterator[bytes]:
        self.is_read.set()
        yield lines(1)[0]
        await self.may_end.wait()


async def put(parts: Parts, slots: UploadSlots, senders: list[Sender], token: str, number: int) -> httpx2.Response:
    routes = replace(parts.routes(), streams=slots)
    async with client_of(app_of(routes), token) as client:
        sent = senders[number].body()
        return await client.http.put("/documents", content=sent, headers={"content-type": LINES})


async def test_a_tenant_has_a_few_slots_and_the_body_of_a_waiting_upload_is_not_read(parts: Parts) -> None:
    slots, senders = UploadSlots(8, 2), [Sender() for _ in range(4)]
    tasks = [asyncio.create_task(put(parts, slots, senders, "token-of-acme", number)) for number in range(3)]
    async with asyncio.timeout(SOON):
        await asyncio.gather(*(sender.is_read.wait() for sender in senders[:2]))
        other = asyncio.create_task(put(parts, slots, senders, "token-of-other", 3))
        await senders[3].is_read.wait()
        assert not senders[2].is_read.is_set()
        senders[0].may_end.set()
        await senders[2].is_read.wait()
        for sender in senders:
            sender.may_end.set()
        assert [(await task).status_code for task in (*tasks, other)] == [200] * 4
    assert slots.active_tenants == 0


@pytest.mark.parametrize(
    ("slots", "status", "code"),
    [(UploadSlots(8, 1, 0.05), 429, "RATE_LIMITED"), (UploadSlots(1, 8, 0.05), 503, "UNAVAILABLE")],
    ids=["tenant", "process"],
)
async def test_an_upload_that_waits_too_long_gets_a_retry_after(
    parts: Parts, slots: UploadSlots, status: int, code: str
) -> None:
    senders = [Sender(), Sender()]
    first = asyncio.create_task(put(parts, slots, senders, "token-of-acme", 0))
    async with asyncio.timeout(SOON):
        await senders[0].is_read.wait()
        answer = await put(parts, slots, senders, "token-of-acme", 1)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.headers["retry-after"] == "10"
        assert not senders[1].is_read.is_set()
        senders[0].may_end.set()
        assert (await first).status_code == 200
    assert slots.active_tenants == 0


async def test_a_tenant_that_waits_for_its_own_slots_blocks_no_other() -> None:
    slots = UploadSlots(2, 1, 0.05)
    async with AsyncExitStack() as held:
        await held.enter_async_context(slots.turn(ACME.tenant))
        waiting = [asyncio.create_task(held.enter_async_context(slots.turn(ACME.tenant))) for _ in range(5)]
        await asyncio.sleep(0)
        await held.enter_async_context(slots.turn(OTHER.tenant))
        with pytest.raises(Unavailable):
            await held.enter_async_context(slots.turn(Tenant("third")))
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(error) for error in ended} == {TooManyRequests}
    assert slots.active_tenants == 0


async def test_a_slot_is_released_whatever_ends_the_upload() -> None:
    slots = UploadSlots(1, 1, 0.05)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with slots.turn(ACME.tenant):
                raise ZeroDivisionError
    async with slots.turn(ACME.tenant):
        waiting = asyncio.create_task(slots.turn(ACME.tenant).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
    async with slots.turn(ACME.tenant):
        assert slots.active_tenants == 1
