"""The queue of the query log: it never blocks a search, and its size is bounded."""

import asyncio
import logging
import time

import pytest

from tests.unit.documents.query_log_builders import SOON, BrokenSink, GatedSink, Losses, RecordingSink, search
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.retrieval.query import Fusion
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.filters import FieldCondition, Filters
from toolscript.documents.model.query import DocumentQuery, LogDetail, LoggedQuery
from toolscript.documents.query_log import BATCH, QueuedQueryLog, log_entry

pytestmark = [pytest.mark.requirement("DOC-007")]

LONG = 3600.0
CALLER = Principal(Tenant("ann"), Plan("small"), subject="a-person")
QUERY = DocumentQuery(
    "who has my keys",
    top_k=7,
    fusion=Fusion.RRF,
    filters=Filters(must=(FieldCondition.of("secret_field", "eq", "secret_value"),)),
)
HITS = (DocumentHit("0" * 24, "doc-1", 0.5, {"owner": "somebody"}), DocumentHit("1" * 24, "doc-2", 0.25, {}))
ANSWER = DocumentAnswer(HITS, Total(41, Exactness.ABOUT), degraded=("embedding",), reranked_by="a-model")


def _entry(keeps: LogDetail) -> LoggedQuery:
    return log_entry(CALLER, QUERY, ANSWER, keeps, at="2026-01-31T12:00:00+00:00", query_id="q", took_ms=1.5)


def test_metrics_only_entries_have_no_query_text_and_no_results() -> None:
    metrics = _entry(LogDetail.FIGURES)
    assert (metrics.text, metrics.found) == ("", ())
    assert (metrics.tenant, metrics.plan, metrics.filters, metrics.top_k) == ("ann", "small", 1, 7)
    assert (metrics.search_type, metrics.fusion, metrics.hits, metrics.total) == ("hybrid", "rrf", 2, 41)
    assert (metrics.degraded, metrics.reranked_by, metrics.took_ms) == (("embedding",), "a-model", 1.5)


@pytest.mark.parametrize(
    ("keeps", "text", "found"),
    [
        (LogDetail.FIGURES, "", ()),
        (LogDetail.TEXT, "who has my keys", ()),
        (LogDetail.RESULTS, "who has my keys", ("doc-1", "doc-2")),
    ],
)
def test_the_setting_determines_what_is_kept(keeps: LogDetail, text: str, found: tuple[str, ...]) -> None:
    kept = _entry(keeps)
    assert (kept.text, kept.found) == (text, found)
    assert not {"secret_field", "secret_value", "somebody", "a-person"} & set(repr(kept).split("'"))


async def test_closing_writes_the_entries_in_order() -> None:
    sink = RecordingSink()
    log = QueuedQueryLog(sink, every_seconds=LONG)
    for number in range(3):
        log.record(search(number))
    await log.aclose()
    assert sink.batches == [[search(0), search(1), search(2)]]


async def test_queued_entries_are_written_after_the_interval() -> None:
    sink = GatedSink()
    log = QueuedQueryLog(sink, every_seconds=0.01)
    log.record(search())
    await asyncio.wait_for(sink.began.wait(), SOON)
    sink.open.set()
    await log.aclose()
    assert sink.taken == [search()]


async def test_a_full_batch_does_not_wait() -> None:
    sink = GatedSink()
    log = QueuedQueryLog(sink, every_seconds=LONG)
    for number in range(BATCH):
        log.record(search(number))
    await asyncio.wait_for(sink.began.wait(), SOON)
    sink.open.set()
    await log.aclose()
    assert [len(batch) for batch in sink.batches] == [BATCH]


async def test_no_batch_is_larger_than_the_limit() -> None:
    sink = RecordingSink()
    log = QueuedQueryLog(sink, every_seconds=LONG)
    for number in range(2 * BATCH + 1):
        log.record(search(number))
    await log.aclose()
    assert [len(batch) for batch in sink.batches] == [BATCH, BATCH, 1]
    assert sink.taken == [search(number) for number in range(2 * BATCH + 1)]


async def test_when_the_queue_is_full_the_newest_is_dropped_and_counted() -> None:
    sink, losses = RecordingSink(), Losses()
    log = QueuedQueryLog(sink, losses, max_waiting=2, every_seconds=LONG)
    for number in range(5):
        log.record(search(number))
    assert losses.by_reason == {"full": 3}
    await log.aclose()
    assert sink.taken == [search(0), search(1)]


async def test_recording_never_blocks_however_slow_the_sink_is() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=0.0)
    log.record(search())
    await asyncio.wait_for(sink.began.wait(), SOON)
    began = time.perf_counter()
    for number in range(20_000):
        log.record(search(number))
    assert time.perf_counter() - began < 5.0
    assert losses.by_reason == {"full": 10_000}
    sink.open.set()
    await log.aclose()


async def test_a_failed_write_is_retried() -> None:
    sink, losses = RecordingSink(failures=2), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=0.0, pause_seconds=0.0)
    log.record(search())
    await asyncio.wait_for(sink.took.wait(), SOON)
    await log.aclose()
    assert (sink.tries, sink.taken, losses.by_reason) == (3, [search()], {})


async def test_a_batch_is_dropped_after_three_tries_and_the_next_is_written() -> None:
    sink, losses = RecordingSink(failures=3), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=0.0, pause_seconds=0.0)
    log.record(search(1))
    await losses.until(failed=1)
    log.record(search(2))
    await log.aclose()
    assert losses.by_reason == {"failed": 1}
    assert sink.taken == [search(2)]


async def test_an_unexpected_exception_loses_a_batch_and_not_the_log(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses()
    log = QueuedQueryLog(BrokenSink(), losses, every_seconds=0.0, pause_seconds=0.0)
    for number in (1, 2):
        log.record(search(text="my very own words"))
        await losses.until(failed=number)
    await log.aclose()
    assert losses.by_reason == {"failed": 2}
    assert "my very own words" not in "".join(str(vars(record)) for record in caplog.records)


async def test_closing_gives_up_on_a_sink_that_hangs() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=0.0)
    log.record(search(1))
    await asyncio.wait_for(sink.began.wait(), SOON)
    log.record(search(2))
    began = time.perf_counter()
    await log.aclose(within_seconds=0.05)
    assert time.perf_counter() - began < 5.0
    assert losses.by_reason == {"failed": 2}


async def test_a_write_has_a_timeout() -> None:
    sink, losses = GatedSink(), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=0.0, pause_seconds=0.0, write_seconds=0.01)
    log.record(search())
    await losses.until(failed=1)
    await log.aclose()
    assert losses.by_reason == {"failed": 1}


async def test_losses_are_logged_once_a_minute_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = QueuedQueryLog(RecordingSink(), max_waiting=0, every_seconds=LONG, now=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for second in range(121):
            now[0] = float(second)
            log.record(search(text="my very own words"))
    await log.aclose()
    warnings = [record for record in caplog.records if record.message == "searches were not noted"]
    assert [vars(record)["total"] for record in warnings] == [1, 60, 60]
    assert "my very own words" not in "".join(str(vars(record)) for record in caplog.records)


async def test_an_entry_after_closing_is_counted_as_lost() -> None:
    sink, losses = RecordingSink(), Losses()
    log = QueuedQueryLog(sink, losses, every_seconds=LONG)
    await log.aclose()
    log.record(search())
    assert (sink.taken, losses.by_reason) == ([], {"full": 1})
