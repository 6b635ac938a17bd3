"""Progress where nobody watches a terminal: few lines, and true ones."""

import pytest

from toolscript.cli import output
from toolscript.cli.output import progress, rate_text
from toolscript.core.values import Progress


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(output, "time", clock)
    return clock


def lines_of(clock: Clock, capsys: pytest.CaptureFixture[str], told: list[tuple[float, Progress]]) -> list[str]:
    """What is written when so many seconds pass before each of these."""
    with progress() as on_progress:
        for seconds, at in told:
            clock.now += seconds
            on_progress(at)
    return capsys.readouterr().err.splitlines()


def test_an_hour_of_slow_files_is_about_a_line_a_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    told = [(1.0, Progress("files", second // 200, 1_000)) for second in range(3_600)]
    written = lines_of(clock, capsys, told)
    assert 10 < len(written) <= 70
    assert [line for line in written if ", 0/s" in line] == []
    assert "files: 17 of 1,000, 17/h" in written[-1]


def test_a_file_with_many_chunks_that_is_the_last_writes_its_line_once(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [(0.01, Progress("files", 20, 20)) for _ in range(1_000)]
    written = lines_of(clock, capsys, [(2.0, Progress("files", 20, 20)), *told])
    assert len(written) <= 3
    assert written[0].startswith("files: 20 of 20, 10/s")


def test_a_quick_task_is_written_once_for_every_tenth_and_not_more_often_than_every_few_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [(0.5, Progress("sync", done, 200)) for done in range(1, 201)]
    written = lines_of(clock, capsys, told)
    assert 5 <= len(written) <= 12
    assert written[-1].startswith("sync: 200 of 200")


def test_more_than_was_expected_never_reads_like_seven_of_one(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    written = lines_of(clock, capsys, [(6.0, Progress("files", 7, 1))])
    assert written == ["files: 7 of 7, 1/s"]


def test_nothing_done_yet_has_no_rate(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of(clock, capsys, [(6.0, Progress("files", 0, 9))]) == ["files: 0 of 9"]


@pytest.mark.parametrize(("rate", "said"), [(1234.4, "1,234/s"), (1.0, "1/s"), (0.4, "24/min"), (0.01, "36/h")])
def test_a_rate_below_one_a_second_is_said_by_the_minute_or_the_hour(rate: float, said: str) -> None:
    assert rate_text(rate) == said
