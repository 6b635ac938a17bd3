"""Contract of ActivityLog: each search and call once, completed, filtered and paged."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doubles import MemoryActivity
from toolscript.gateway.activity import (
    Action,
    ActivityFilter,
    ActivityLog,
    Ending,
    Entry,
    Outcome,
)
from toolscript.gateway.store.activity_log import SqliteActivity

pytestmark = pytest.mark.requirement("GW-005")

CALL = Entry(Action.CALL, 1_700_000_000.5, "cursor", "files", "read_file", 20)
DONE = Ending(Outcome.OK, 12.5, measure=lambda: 300)
ANY = ActivityFilter()


@pytest.fixture(params=["memory", "sqlite"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ActivityLog]:
    if request.param == "memory":
        yield MemoryActivity()
        return
    activity = SqliteActivity(tmp_path / "activity.db")
    yield activity
    await activity.close()


async def test_a_log_is_empty_and_well_at_first(log: ActivityLog) -> None:
    await log.written()
    assert list(await log.page(ANY, None, 10)) == []
    assert log.problem == ""


async def test_a_call_runs_and_is_completed_in_the_same_row(log: ActivityLog) -> None:
    ticket = log.begin(CALL)
    [running] = await log.page(ANY, None, 10)
    assert (running.entry, running.outcome, running.took_ms, running.result_bytes) == (
        CALL,
        Outcome.RUNNING,
        None,
        None,
    )
    log.finish(ticket, DONE)
    [done] = await log.page(ANY, None, 10)
    assert done == replace(running, outcome=Outcome.OK, took_ms=12.5, result_bytes=300)


async def test_calls_at_once_are_completed_each_in_its_own_row(log: ActivityLog) -> None:
    async def call(number: int) -> None:
        ticket = log.begin(replace(CALL, tool=f"tool_{number}"))
        await log.written()
        log.finish(ticket, replace(DONE, took_ms=float(number)))
        await log.written()

    await asyncio.gather(*map(call, range(200)))
    records = await log.page(ANY, None, 1_000)
    assert sorted((record.entry.tool, record.took_ms) for record in records) == sorted(
        (f"tool_{number}", float(number)) for number in range(200)
    )
    assert {record.outcome for record in records} == {Outcome.OK}


async def test_what_has_begun_and_ended_is_one_row(log: ActivityLog) -> None:
    search = Entry(Action.SEARCH, 1.0, "cli", argument_bytes=7, arguments='{"query": "x"}')
    log.add(search, Ending(Outcome.ERROR, 3.0, "UNAVAILABLE"))
    [record] = await log.page(ANY, None, 10)
    assert (record.entry, record.outcome, record.error) == (search, Outcome.ERROR, "UNAVAILABLE")


async def test_pages_are_the_newest_first_and_go_on_where_they_ended(log: ActivityLog) -> None:
    for number in range(5):
        log.add(replace(CALL, tool=f"tool_{number}"), DONE)
    first = await log.page(ANY, None, 2)
    second = await log.page(ANY, first[-1].id, 2)
    third = await log.page(ANY, second[-1].id, 2)
    names = [record.entry.tool for page in (first, second, third) for record in page]
    assert names == [f"tool_{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (ActivityFilter(server="files"), ["read_file", "write_file"]),
        (ActivityFilter(tool="read_file"), ["read_file", "read_file"]),
        (ActivityFilter(tool="mail__read_file"), ["read_file"]),
        (ActivityFilter(client="cli"), ["write_file"]),
        (ActivityFilter(outcome="error"), ["read_file"]),
        (ActivityFilter(server="files", client="cursor", outcome="ok"), ["read_file"]),
        (ActivityFilter(server="' OR 1=1 --"), []),
    ],
)
async def test_a_filter_keeps_what_fits_all_of_it(
    log: ActivityLog, where: ActivityFilter, found: list[str]
) -> None:
    log.add(CALL, DONE)
    log.add(replace(CALL, server="mail"), replace(DONE, outcome=Outcome.ERROR))
    log.add(replace(CALL, tool="write_file", client="cli"), DONE)
    assert sorted(record.entry.tool for record in await log.page(where, None, 10)) == found


async def test_names_of_any_characters_and_length_are_kept_as_far_as_they_can_be(log: ActivityLog) -> None:
    log.add(replace(CALL, client="\ud800\0\x1b[31m日本" + "x" * 1_000, tool="'; DROP TABLE activity"), DONE)
    [record] = await log.page(ANY, None, 10)
    assert record.entry.client.startswith("\ufffd\ufffd\x1b[31m日本x")
    assert len(record.entry.client) == 200
    assert record.entry.tool == "'; DROP TABLE activity"
    assert log.problem == ""
