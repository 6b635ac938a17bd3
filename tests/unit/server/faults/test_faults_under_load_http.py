"""A fault amid many searches: each is answered in time, and complete unless marked as degraded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from tests.support.faults import Fault, Relay
from tests.unit.server.faults.builders import STRATEGIES, Answer, Faulty

AT_ONCE = 20

RELAYS: dict[str, Callable[[Faulty], Relay]] = {
    "embedding": lambda faulty: faulty.embedding,
    "index": lambda faulty: faulty.qdrant,
    "schemas": lambda faulty: faulty.postgres,
}


async def many(faulty: Faulty, in_the_middle: Callable[[], Awaitable[None]]) -> list[tuple[str, Answer]]:
    """Run many searches, and inject the fault after the first response."""
    requests = [STRATEGIES[index % len(STRATEGIES)] for index in range(AT_ONCE)]
    searches = [asyncio.ensure_future(faulty.search(strategy)) for strategy in requests]
    await asyncio.wait(searches, return_when=asyncio.FIRST_COMPLETED)
    await in_the_middle()
    return list(zip(requests, await asyncio.gather(*searches), strict=True))


@pytest.mark.requirement("API-002", "EC-009", "BR-007")
@pytest.mark.parametrize("fault", [Fault.RESET, Fault.REFUSED, Fault.HANGING])
@pytest.mark.parametrize("part", RELAYS)
async def test_a_fault_amid_many_searches_degrades_none_silently(faulty: Faulty, part: str, fault: Fault) -> None:
    relay = RELAYS[part](faulty)
    for strategy, answer in await many(faulty, lambda: relay.fail(fault)):
        faulty.check(strategy, answer)


@pytest.mark.requirement("API-002", "EC-009")
@pytest.mark.parametrize("part", RELAYS)
async def test_waiting_searches_continue_when_the_engine_recovers(faulty: Faulty, part: str) -> None:
    relay = RELAYS[part](faulty)

    async def waited_for() -> bool:
        await relay.fail(Fault.HANGING)
        searches = [asyncio.ensure_future(faulty.search(strategy)) for strategy in STRATEGIES]
        done, _ = await asyncio.wait(searches, timeout=0.1)
        assert not done
        await relay.heal()
        answers = await asyncio.gather(*searches)
        for strategy, answer in zip(STRATEGIES, answers, strict=True):
            faulty.check(strategy, answer)
        return not any(answer.degraded for answer in answers)

    assert await waited_for() or await waited_for() or await waited_for()


@pytest.mark.requirement("API-001", "BR-006", "EC-009")
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING])
async def test_each_stage_alone_is_an_error_where_nothing_could_be_searched(faulty: Faulty, fault: Fault) -> None:
    await faulty.qdrant.fail(fault)
    skills = await faulty.client.get("/api/v1/search/skills", params={"query": "pull request"})
    tools = await faulty.client.get("/api/v1/search/tools", params={"query": "pull request"})
    assert (skills.status_code, skills.headers["retry-after"]) == (503, "1")
    assert (tools.status_code, tools.headers["retry-after"]) == (503, "1")


@pytest.mark.requirement("BR-006")
async def test_the_reason_is_logged_and_not_returned_to_the_client(
    faulty: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    await faulty.calls.fail(Fault.REFUSED, naming="__skills__")
    answer = await faulty.search("hierarchical")
    logged = [(line.levelno, line.__dict__.get("part")) for line in caplog.records]
    assert (logging.WARNING, "skills") in logged
    assert "gone" in caplog.text or any("gone" in str(line.__dict__.get("reason")) for line in caplog.records)
    assert "gone" not in str(answer.body)
