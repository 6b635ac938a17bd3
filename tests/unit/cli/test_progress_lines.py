"""Progress without a terminal: few and correct lines."""

import pytest

from toolscript.cli import output
from toolscript.cli.output import progress, rate_text
from toolscript.core.values import Progress


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(output, "time", clock)
    return clock


def lines_of(clock: Clock, capsys: pytest.CaptureFixture[str], updates: list[tuple[float, Progress]]) -> list[str]:
    """Return the lines written when this many seconds pass before each update."""
    with progress() as on_progress:
        for seconds, state in updates:
            clock.now += seconds
            on_progress(state)
    return capsys.readouterr().err.splitlines()


def test_an_hour_of_slow_files_is_about_a_line_a_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    updates = [(1.0, Progress("files", second // 200, 1_000)) for second in range(3_600)]
    written = lines_of(clock, capsys, updates)
    assert 10 < len(written) <= 70
    assert [line for line in written if ", 0/s" in line] == []
    assert "files: 17 of 1,000, 17/h" in written[-1]


def test_a_file_with_many_chunks_that_is_the_last_writes_its_line_once(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    updates = [(0.01, Progress("files", 20, 20)) for _ in range(1_000)]
    written = lines_of(clock, capsys, [(2.0, Progress("files", 20, 20)), *updates])
    assert len(written) <= 3
    assert written[0].startswith("files: 20 of 20, 10/s")


def test_a_quick_task_is_written_once_for_every_tenth_and_not_more_often_than_every_few_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    updates = [(0.5, Progress("sync", done, 200)) for done in range(1, 201)]
    written = lines_of(clock, capsys, updates)
    assert 5 <= len(written) <= 12
    assert written[-1].startswith("sync: 200 of 200")


def test_progress_beyond_the_total_never_shows_seven_of_one(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    written = lines_of(clock, capsys, [(6.0, Progress("files", 7, 1))])
    assert written == ["files: 7 of 7, 1/s"]


def test_nothing_done_yet_has_no_rate(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of(clock, capsys, [(6.0, Progress("files", 0, 9))]) == ["files: 0 of 9"]


@pytest.mark.parametrize(("rate", "text"), [(1234.4, "1,234/s"), (1.0, "1/s"), (0.4, "24/min"), (0.01, "36/h")])
def test_a_rate_below_one_a_second_is_shown_per_minute_or_hour(rate: float, text: str) -> None:
    assert rate_text(rate) == text
