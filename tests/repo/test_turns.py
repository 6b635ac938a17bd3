"""Concurrent tests let an exclusive test run alone."""

import fcntl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.gateway.machines import until
from tests.support.turns import turn


def somebody_stands_in_the_door_of(folder: Path) -> bool:
    with (folder / "door").open("w") as door:
        try:
            fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_two_shared_tests_run_concurrently(tmp_path: Path) -> None:
    with turn(tmp_path, alone=False), turn(tmp_path, alone=False):
        assert not somebody_stands_in_the_door_of(tmp_path)


def test_an_exclusive_test_waits_for_earlier_tests_and_blocks_later_ones(tmp_path: Path) -> None:
    seen: list[str] = []

    def taking_part(name: str, *, alone: bool) -> Callable[[], None]:
        def run() -> None:
            with turn(tmp_path, alone=alone):
                seen.append(f"{name} begins")
                seen.append(f"{name} ends")

        return run

    with ThreadPoolExecutor(2) as threads:
        with turn(tmp_path, alone=False):
            threads.submit(taking_part("measuring", alone=True))
            until(lambda: somebody_stands_in_the_door_of(tmp_path), "the one that is to be alone")
            later = threads.submit(taking_part("another", alone=False))
            assert seen == []
        later.result()
    assert seen == ["measuring begins", "measuring ends", "another begins", "another ends"]
