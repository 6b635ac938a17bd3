"""A gateway hands its socket over once."""

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.types import Message

from toolscript.core.errors import InvalidRequest, Unauthorized, Unavailable
from toolscript.gateway.api import HAS_CREDENTIAL
from toolscript.gateway.handover import Handover


class SlowHandover(Handover):
    """One that takes a moment to send the socket."""

    sent = 0
    fails = False

    def _send(self, address: str) -> None:
        time.sleep(0.1)
        if self.fails:
            raise InvalidRequest("the socket cannot be used")
        self.sent += 1


@pytest.fixture
def handover() -> SlowHandover:
    record = SimpleNamespace(hand_over=lambda: None)
    made = SlowHandover(cast("Any", None), cast("Any", record))
    state = SimpleNamespace(connections=set())
    made.server = cast("Any", SimpleNamespace(servers=[], server_state=state, should_exit=False))
    return made


async def ask(handover: Handover, *, credential: bool = True) -> int:
    async def body() -> Message:
        return {"type": "http.request", "body": json.dumps({"socket": "/s"}).encode(), "more_body": False}

    scope = {"type": "http", "method": "POST", "headers": [], HAS_CREDENTIAL: credential}
    request = Request(scope, body)
    return int((await handover.route().endpoint(request)).status_code)


async def test_of_two_that_ask_at_once_one_gets_the_socket(handover: SlowHandover) -> None:
    answers = await asyncio.gather(*(ask(handover) for _ in range(2)), return_exceptions=True)
    assert [answer if isinstance(answer, int) else type(answer) for answer in answers] == [200, Unavailable]
    assert handover.sent == 1


async def test_the_persons_own_token_is_needed(handover: SlowHandover) -> None:
    with pytest.raises(Unauthorized):
        await ask(handover, credential=False)
    assert handover.sent == 0


async def test_after_a_failure_another_one_may_ask(handover: SlowHandover) -> None:
    handover.fails = True
    with pytest.raises(InvalidRequest):
        await ask(handover)
    handover.fails = False
    assert await ask(handover) == 200
