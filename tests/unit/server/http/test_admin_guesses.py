"""Wrong admin tokens: counted, logged once and answered late; the right one is never."""

import logging
import time

import httpx2
import pytest
from fastapi import Depends, FastAPI

from toolscript.core.web.admin_guesses import MISTAKES, AdminGuesses
from toolscript.core.web.auth import AdminAccess, admins_only
from toolscript.core.web.errors import install_error_handlers

pytestmark = pytest.mark.requirement("AP-005")
SLOW = 0.2


async def test_guesses_are_counted_logged_once_and_slowed_and_the_right_token_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[int] = []
    guesses = AdminGuesses(on_guess=lambda: counted.append(1), slow_seconds=SLOW)
    app = FastAPI()
    install_error_handlers(app)

    @app.get("/", dependencies=[Depends(admins_only(AdminAccess("right", guesses=guesses)))])
    async def answer() -> str:
        return "yes"

    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        with caplog.at_level(logging.WARNING):
            for number in range(MISTAKES):
                assert (await _ask(client, f"guess-{number}"))[0] == 401
            status, seconds = await _ask(client, "one-more")
        assert (status, len(counted), seconds >= SLOW) == (401, MISTAKES + 1, True)
        assert [record.message for record in caplog.records] == ["a wrong admin token"]
        assert "guess-" not in str([vars(record) for record in caplog.records])
        assert (await _ask(client, "right"))[0] == 200
        # A tenant's token is no guess, nor is a request without one.
        assert (await _ask(client, "a.b.c"))[0] == 401
        assert (await client.get("/")).status_code == 401
        assert len(counted) == MISTAKES + 1


async def _ask(client: httpx2.AsyncClient, token: str) -> tuple[int, float]:
    began = time.perf_counter()
    answer = await client.get("/", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, time.perf_counter() - began
