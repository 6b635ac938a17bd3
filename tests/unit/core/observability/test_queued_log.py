"""The queue of a log: it never blocks what it records, and its size is bounded."""

import asyncio
import logging
import time

import pytest

from tests.unit.core.observability.queued_log_builders import SOON, BrokenSink, GatedSink, Losses, RecordingSink
from toolscript.core.observability.queued_log import BATCH, QueuedLog

pytestmark = [pytest.mark.requirement("DOC-007")]

LONG = 3600.0


async def test_closing_writes_the_entries_in_order() -> None:
    sink = RecordingSink()
    log = QueuedLog(sink, every_seconds=LONG)
    for number in range(3):
        log.record(number)
    await log.aclose()
    assert sink.batches == [[0, 1, 2]]


async def test_queued_entries_are_written_after_the_interval() -> None:
    sink = GatedSink()
    log = QueuedLog(sink, every_seconds=0.01)
    log.record(0)
    await asyncio.wait_for(sink.began.wait(), SOON)
    sink.open.set()
    await log.aclose()
    assert sink.taken == [0]


async def test_a_full_batch_does_not_wait() -> None:
    sink = GatedSink()
    log = QueuedLog(sink, every_seconds=LONG)
    for number in range(BATCH):
        log.record(number)
    await asyncio.wait_for(sink.began.wait(), SOON)
    sink.open.set()
    await log.aclose()
    assert [len(batch) for batch in sink.batches] == [BATCH]


async def test_no_batch_is_larger_than_the_limit() -> None:
    sink = RecordingSink()
    log = QueuedLog(sink, every_seconds=LONG)
    for number in range(2 * BATCH + 1):
        log.record(number)
    await log.aclose()
    assert [len(batch) for batch in sink.batches] == [BATCH, BATCH, 1]
    assert sink.taken == list(range(2 * BATCH + 1))


async def test_when_the_queue_is_full_the_newest_is_dropped_and_counted() -> None:
    sink, losses = RecordingSink(), Losses()
    log = QueuedLog(sink, losses, max_waiting=2, every_seconds=LONG)
    for number in range(5):
        log.record(number)
    assert losses.by_reason == {"full": 3}
    await log.aclose()
    assert sink.taken == [0, 1]


async def test_recording_never_blocks_however_slow_the_sink_is() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedLog(sink, losses, every_seconds=0.0)
    log.record(0)
    await asyncio.wait_for(sink.began.wait(), SOON)
    began = time.perf_counter()
    for number in range(20_000):
        log.record(number)
    assert time.perf_counter() - began < 5.0
    assert losses.by_reason == {"full": 10_000}
    sink.open.set()
    await log.aclose()


async def test_a_failed_write_is_retried() -> None:
    sink, losses = RecordingSink(failures=2), Losses()
    log = QueuedLog(sink, losses, every_seconds=0.0, pause_seconds=0.0)
    log.record(0)
    await asyncio.wait_for(sink.took.wait(), SOON)
    await log.aclose()
    assert (sink.tries, sink.taken, losses.by_reason) == (3, [0], {})


async def test_a_batch_is_dropped_after_three_tries_and_the_next_is_written() -> None:
    sink, losses = RecordingSink(failures=3), Losses()
    log = QueuedLog(sink, losses, every_seconds=0.0, pause_seconds=0.0)
    log.record(1)
    await losses.until(failed=1)
    log.record(2)
    await log.aclose()
    assert losses.by_reason == {"failed": 1}
    assert sink.taken == [2]


async def test_an_unexpected_exception_loses_a_batch_and_not_the_log(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses()
    log = QueuedLog(BrokenSink(), losses, every_seconds=0.0, pause_seconds=0.0)
    for number in (1, 2):
        log.record("my very own words")
        await losses.until(failed=number)
    await log.aclose()
    assert losses.by_reason == {"failed": 2}
    assert "my very own words" not in "".join(str(vars(record)) for record in caplog.records)


async def test_closing_gives_up_on_a_sink_that_hangs() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedLog(sink, losses, every_seconds=0.0)
    log.record(1)
    await asyncio.wait_for(sink.began.wait(), SOON)
    log.record(2)
    began = time.perf_counter()
    await log.aclose(within_seconds=0.05)
    assert time.perf_counter() - began < 5.0
    assert losses.by_reason == {"failed": 2}


async def test_a_write_has_a_timeout() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedLog(sink, losses, every_seconds=0.0, pause_seconds=0.0, write_seconds=0.01)
    log.record(0)
    await losses.until(failed=1)
    await log.aclose()
    assert losses.by_reason == {"failed": 1}


async def test_losses_are_logged_once_a_minute_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = QueuedLog[str](RecordingSink(), max_waiting=0, every_seconds=LONG, now=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for second in range(121):
            now[0] = float(second)
            log.record("my very own words")
    await log.aclose()
    warnings = [record for record in caplog.records if record.message == "searches were not noted"]
    assert [vars(record)["total"] for record in warnings] == [1, 60, 60]
    assert "my very own words" not in "".join(str(vars(record)) for record in caplog.records)


async def test_an_entry_after_closing_is_counted_as_lost() -> None:
    sink, losses = RecordingSink(), Losses()
    log = QueuedLog(sink, losses, every_seconds=LONG)
    await log.aclose()
    log.record(0)
    assert (sink.taken, losses.by_reason) == ([], {"full": 1})
