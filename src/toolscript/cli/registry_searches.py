"""`toolscript tools searches` and `toolscript tools gaps`: what a service was asked for, and did not find."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, OnlyNamespace, PageCursor, PageLimit, seen_of
from toolscript.cli.output import show, show_page, table_by_namespace
from toolscript.tools.model.search_log import MAX_DAYS, MAX_GAPS

if TYPE_CHECKING:
    from toolscript.tools.model.search_log import Gap, LoggedSearch

Days = Annotated[int, typer.Option(min=1, max=MAX_DAYS, help="How many days back.")]
NoMatch = Annotated[bool, typer.Option("--no-match", help="Only searches without a good match.")]
MaxGaps = Annotated[int, typer.Option("--limit", min=1, max=MAX_GAPS, help="Maximum number of requests.")]
NOT_LOGGED = "no such search is logged; TOOLSCRIPT_TOOL_SEARCH_LOG=text makes `toolscript serve` log them"


def add_searches(group: typer.Typer) -> None:
    @group.command()
    def searches(
        days: Days = 7,
        no_match: NoMatch = False,
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List logged searches, the latest first."""
        from toolscript.core.web.cursors import decode_key
        from toolscript.server.search_log import with_search_log
        from toolscript.tools.model.search_log import SearchFilter, SearchPosition
        from toolscript.tools.schemas.search_log import SearchPage

        before, seen = SearchPosition.parse(decode_key(cursor, SearchPosition.parse)), seen_of(namespace)
        where = SearchFilter(_since(days), good_match=False if no_match else None)
        read = with_search_log(lambda log: log.within(seen).page(where, before, limit + 1))
        page = SearchPage.of_searches(read, limit)
        show_page(page, _search_table(read[:limit]), page.next_cursor, as_json=as_json, option="--cursor")

    @group.command()
    def gaps(
        days: Days = 7, namespace: OnlyNamespace = None, limit: MaxGaps = 20, as_json: AsJson = False
    ) -> None:
        """List the most frequent requests without a good match: what the catalog lacks, or calls differently."""
        from toolscript.server.search_log import search_log_detail, with_search_log
        from toolscript.tools.schemas.search_log import GapsShown

        seen = seen_of(namespace)
        report = with_search_log(lambda log: log.within(seen).gaps(_since(days), limit))
        show(GapsShown.of(report, days, search_log_detail()), _gap_table(report.gaps), as_json=as_json)


def _since(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def _search_table(searches: "Sequence[LoggedSearch]") -> str:
    if not searches:
        return NOT_LOGGED
    verdicts = {True: "yes", False: "no", None: "?"}
    rows = [
        [_time(search), verdicts[search.good_match], str(search.hits), _nearest(search), search.text or "-"]
        for search in searches
    ]
    return table_by_namespace(["Time (UTC)", "Match", "Hits", "Best tool", "Text"], rows, _namespaces(searches))


def _gap_table(gaps: "Sequence[Gap]") -> str:
    if not gaps:
        return NOT_LOGGED
    lasts = [gap.last for gap in gaps]
    rows = [[str(gap.count), _time(gap.last), _nearest(gap.last), gap.last.text] for gap in gaps]
    return table_by_namespace(["Count", "Last (UTC)", "Nearest tool", "Text"], rows, _namespaces(lasts))


def _namespaces(searches: "Sequence[LoggedSearch]") -> list[str | None]:
    return [",".join(search.namespaces) for search in searches]


def _time(search: "LoggedSearch") -> str:
    return f"{search.at:%Y-%m-%d %H:%M:%S}"


def _nearest(search: "LoggedSearch") -> str:
    if search.tool_id is None:
        return "-"
    sure = "" if search.confidence is None else f" {search.confidence:.2f}"
    return f"{search.tool_name or search.tool_id}{sure}"
