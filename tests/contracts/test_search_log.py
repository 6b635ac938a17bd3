"""Contract of SearchLog: tool searches by day and namespace, and the report of those without a good match."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

import pytest

from tests.conftest import PATIENCE
from tests.contracts.builders import tools
from tests.contracts.search_log_builders import LONG_AGO, NOW, logged, missed
from toolscript.core.postgres.pool import open_pool
from toolscript.core.retrieval.query import SearchType
from toolscript.testing import MemoryCatalog, MemoryDirtySet, MemorySearchLog
from toolscript.tools.model.query import Strategy
from toolscript.tools.model.search_log import MAX_TEXT, Channel, LoggedSearch, SearchFilter, SearchPosition
from toolscript.tools.ports import Catalog, SearchLog
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.search_log import PostgresSearchLog

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.requirement("AP-005")]

RED, BLUE, BOTH = ("red",), ("blue",), ("blue", "red")
ALL = SearchFilter(LONG_AGO)


@dataclass(frozen=True)
class Scene:
    catalog: Catalog
    open_log: Callable[[int], SearchLog]

    @property
    def log(self) -> SearchLog:
        return self.open_log(100_000)


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        catalog = MemoryCatalog(MemoryDirtySet())
        logs = dict[int, MemorySearchLog]()
        yield Scene(catalog, lambda most: logs.setdefault(most, MemorySearchLog(catalog, most)))
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=4, wait_seconds=PATIENCE) as pool:
            yield Scene(PostgresCatalog(pool), lambda most: PostgresSearchLog(pool, max_counted=most))


async def test_entries_are_read_back_whole_and_the_latest_first(scene: Scene) -> None:
    entries = [
        logged(0),
        logged(1, good_match=None, degraded=("embedding", "index"), channel=Channel.MCP, namespaces=BOTH),
        missed(
            2,
            'a "quoted" query, \\with ü and 漢字 {1,2} \\N',
            unmatched=("quoted", "\\N"),
            tool_id=2**40,
            confidence=0.125,
            strategy=Strategy.DIRECT,
            search_type=SearchType.KEYWORD,
        ),
    ]
    await scene.log.write(entries)
    assert await scene.log.page(ALL, None, 10) == entries[::-1]


async def test_an_entry_that_is_written_again_is_there_once(scene: Scene) -> None:
    await scene.log.write([logged(1), logged(2)])
    await scene.log.write([logged(2), logged(3)])
    assert await scene.log.page(ALL, None, 10) == [logged(3), logged(2), logged(1)]


async def test_pages_follow_each_other_also_where_times_are_equal(scene: Scene) -> None:
    entries = [replace(logged(number // 3), query_id=str(UUID(int=number))) for number in range(20)]
    await scene.log.write(entries)
    read: list[LoggedSearch] = []
    before: SearchPosition | None = None
    while page := await scene.log.page(ALL, before, 3):
        read += page
        before = page[-1].position
    assert read == entries[::-1]


async def test_a_filter_by_verdict_and_by_time(scene: Scene) -> None:
    verdicts = (True, False, None)
    entries = [logged(number, good_match=verdicts[number % 3]) for number in range(9)]
    await scene.log.write(entries)
    for verdict in (True, False):
        page = await scene.log.page(SearchFilter(LONG_AGO, verdict), None, 10)
        assert page == [entry for entry in entries[::-1] if entry.good_match is verdict]
    assert await scene.log.page(SearchFilter(entries[6].at), None, 10) == entries[:5:-1]


async def test_a_view_has_only_searches_in_its_namespaces_alone(scene: Scene) -> None:
    of_red, of_blue = missed(1, "cook", namespaces=RED), missed(2, "cook", namespaces=BLUE)
    of_both, of_all = missed(3, "cook", namespaces=BOTH), missed(4, "cook", namespaces=(*BOTH, "zoo"))
    await scene.log.write([of_red, of_blue, of_both, of_all])
    for names, entries in {
        RED: [of_red],
        BLUE: [of_blue],
        BOTH: [of_both, of_blue, of_red],
        ("zoo",): [],
        ("red", "zoo"): [of_red],
        (): [],
    }.items():
        view = scene.log.within(frozenset(names))
        assert await view.page(ALL, None, 10) == entries
        assert await view.page(ALL, None, 1) == entries[:1]
        report = await view.gaps(LONG_AGO, 10)
        assert [(gap.count, gap.last) for gap in report.gaps] == [(len(entries), entry) for entry in entries[:1]]
    assert (await scene.log.gaps(LONG_AGO, 10)).counted == 4


async def test_namespaces_have_one_order(scene: Scene) -> None:
    await scene.log.write([logged(1, namespaces=BOTH[::-1])])
    assert [search.namespaces for search in await scene.log.within(frozenset(BOTH)).page(ALL, None, 9)] == [BOTH]


async def test_gaps_are_the_most_frequent_requests_without_a_good_match(scene: Scene) -> None:
    await scene.log.write([
        missed(1, "Book a flight!"),
        missed(2, "cook dinner"),
        missed(3, "book  a FLIGHT", tool_id=7, confidence=0.25, unmatched=("flight",)),
        missed(4, "water plants"),
        logged(5, text="book a flight", good_match=True),
        logged(6, text="book a flight", good_match=None),
        logged(7, good_match=False),
    ])  # fmt: skip
    report = await scene.log.gaps(LONG_AGO, 10)
    assert [(gap.count, gap.last.text) for gap in report.gaps] == [
        (2, "book a FLIGHT"),
        (1, "water plants"),
        (1, "cook dinner"),
    ]
    last = report.gaps[0].last
    assert (last.tool_id, last.confidence, last.unmatched) == (7, 0.25, ("flight",))
    assert (report.counted, report.is_complete) == (4, True)
    assert (await scene.log.gaps(LONG_AGO, 1)).gaps == report.gaps[:1]
    assert [gap.last.text for gap in (await scene.log.gaps(NOW + timedelta(seconds=4), 9)).gaps] == [
        "water plants"
    ]


async def test_without_any_gap_the_report_is_empty_and_complete(scene: Scene) -> None:
    report = await scene.log.gaps(LONG_AGO, 10)
    assert (report.gaps, report.counted, report.is_complete) == ((), 0, True)


async def test_a_report_counts_the_latest_only_and_says_so(scene: Scene) -> None:
    log = scene.open_log(3)
    await log.write([missed(number, "old" if number < 5 else "new") for number in range(7)])
    report = await log.gaps(LONG_AGO, 10)
    assert [(gap.count, gap.last.text) for gap in report.gaps] == [(2, "new"), (1, "old")]
    assert (report.counted, report.is_complete) == (3, False)


async def test_the_name_of_a_tool_is_that_of_an_item_in_a_namespace_of_the_search(scene: Scene) -> None:
    await scene.catalog.of("red").store("a source", tools(1))
    (tool,) = [point.id for point in await scene.catalog.scan(0, 10)]
    await scene.log.write([
        missed(1, "mine", tool_id=tool, namespaces=RED),
        missed(2, "theirs", tool_id=tool, namespaces=BLUE),
        missed(3, "gone", tool_id=tool + 1, namespaces=RED),
    ])  # fmt: skip
    names = {search.text: search.tool_name for search in await scene.log.page(ALL, None, 9)}
    assert names == {"mine": "server__tool_0", "theirs": "", "gone": ""}
    gaps = {gap.last.text: gap.last.tool_name for gap in (await scene.log.gaps(LONG_AGO, 9)).gaps}
    assert gaps == names


async def test_old_days_are_dropped_and_all_of_the_others_stay(scene: Scene) -> None:
    today = NOW.date()
    noons = [datetime.combine(today - timedelta(days=ago), time(12), UTC) for ago in range(6)]
    await scene.log.write([logged(ago, at=noon) for ago, noon in enumerate(noons)])
    await scene.log.keep(today, 3, ahead=True)
    await scene.log.keep(today, 3, ahead=False)
    assert [search.at for search in await scene.log.page(ALL, None, 10)] == noons[:4]
    await scene.log.write([logged(9)])
    assert len(await scene.log.page(ALL, None, 10)) == 5


async def test_entries_around_midnight_are_in_order_and_each_in_its_day(scene: Scene) -> None:
    midnight = datetime.combine(NOW.date(), time(), UTC)
    last, first = midnight - timedelta(microseconds=1), midnight
    await scene.log.write([logged(1, at=last), logged(2, at=first)])
    page = await scene.log.page(ALL, None, 10)
    assert [search.at for search in page] == [first, last]
    assert [search.at for search in await scene.log.page(ALL, page[0].position, 10)] == [last]
    await scene.log.keep(NOW.date(), 1, ahead=False)
    assert len(await scene.log.page(ALL, None, 10)) == 2
    await scene.log.keep(NOW.date() + timedelta(days=1), 1, ahead=False)
    assert [search.at for search in await scene.log.page(ALL, None, 10)] == [first]


@pytest.mark.parametrize(
    "text",
    [
        "a\0b\x1b[31m\x07 c",
        "\u202egnp.exe\u2069",
        "x" * 1_000,
        "a\ud800b",
        "'; DROP TABLE mcp.items; --",
        "\\\\x00 {}",
    ],
)
async def test_hostile_text_is_kept_visible_on_one_line_and_cut(scene: Scene, text: str) -> None:
    await scene.log.write([missed(1, f"{text}\n\t{text}", unmatched=(text,) * 50)])
    (search,) = await scene.log.page(ALL, None, 10)
    assert search == missed(1, f"{text} {text}", unmatched=(text,) * 50)
    assert search.text.isprintable()
    assert len(search.text) <= MAX_TEXT
    assert len(search.unmatched) == 20
    assert all(word.isprintable() and len(word) <= 60 for word in search.unmatched)
    assert [gap.last for gap in (await scene.log.gaps(LONG_AGO, 9)).gaps] == [search]
