"""Gives lines of the package small faults, and tells which of them the tests catch.

    python -m tests.mutations record MAP              run the tests of `make test`, and keep which runs which lines
    python -m tests.mutations record MAP PATHS        the same for files of tests that changed since
    python -m tests.mutations run MAP --drawn FILE    draw faults, and run for each the tests of its line

Each fault is planted in a copy of this tree, and only tests that run its line are run, those that run the fewest
lines first. `--drawn` keeps the faults and what caught each: where the file is there they are not drawn again, so
that the tests of two commits meet the same ones. Keep both files outside the repository.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from coverage import Coverage, CoverageData

from tests.mutations.changes import ROOT, Mutation, mutations_of
from tests.mutations.running import PYTEST, SELECTION, Asked, outcomes, preload

TESTS = ("tests/unit", "tests/contracts", "tests/golden")

# Of each line of each file of the package, the tests that run it.
Lines = Mapping[tuple[str, int], Sequence[str]]


def record(file: Path, paths: Sequence[str], workers: int) -> int:
    """Keep which tests run which lines in `file`, beside what it has of other tests."""
    parallel = ("--numprocesses", str(workers), "--dist", "loadfile", "--no-loadscope-reorder")
    plugin = ("-p", "tests.mutations.contexts", "--contexts", str(file.resolve()))
    done = subprocess.run([*PYTEST, *plugin, *parallel, *SELECTION, *(paths or TESTS)], cwd=ROOT, check=False)
    parts = [str(part) for part in file.parent.glob(f"{file.name}.*")]
    kept = Coverage(data_file=str(file), config_file=False)
    kept.combine(parts + ([str(file)] if file.exists() else []))
    kept.save()
    return done.returncode


def lines_of(file: Path) -> Lines:
    """Return the tests of each line, those that run the fewest lines first."""
    data = CoverageData(str(file))
    data.read()
    lines: dict[tuple[str, int], list[str]] = {}
    run: Counter[str] = Counter()
    for name in sorted(data.measured_files()):
        relative = f"src/toolscript{name.rpartition('/src/toolscript')[2]}"
        for line, tests in data.contexts_by_lineno(name).items():
            named = [test for test in tests if test]
            run.update(named)
            lines.setdefault((relative, line), []).extend(named)
    return {place: sorted({*tests}, key=lambda test: (run[test], test)) for place, tests in lines.items() if tests}


def drawn(lines: Lines, number: int, seed: int) -> list[Mutation]:
    """Draw faults of as many lines that tests run."""
    choose = random.Random(seed)
    places = sorted(lines)
    choose.shuffle(places)
    found: list[Mutation] = []
    for file, line in places:
        possible = mutations_of(file, (ROOT / file).read_bytes(), line)
        if possible:
            found.append(choose.choice(possible))
        if len(found) == number:
            break
    return found


def read(file: Path) -> list[tuple[Mutation, str]]:
    """Return the faults of a file, each with what caught it the last time."""
    return [(Mutation(**values["mutation"]), values["by"]) for values in json.loads(file.read_text("utf-8"))]


def write(file: Path, found: Iterable[tuple[Mutation, str]]) -> None:
    values = [{"mutation": asdict(mutation), "by": by} for mutation, by in found]
    file.write_text(f"{json.dumps(values, indent=1)}\n", "utf-8")


def asked(faults: Iterable[tuple[Mutation, str]], lines: Lines, most: int) -> Iterator[Asked]:
    """Yield the tests that are run for each fault: the one that caught it the last time is the first."""
    for mutation, before in faults:
        tests = sorted(lines.get((mutation.file, mutation.line), ()), key=lambda test: test != before)
        yield Asked(mutation, tuple(tests[:most]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "run"))
    parser.add_argument("map", type=Path, help="the file that has which test runs which lines")
    parser.add_argument("paths", nargs="*", help="files of tests to record; all by default")
    parser.add_argument("--drawn", type=Path, help="the file that has the faults; written where there is none")
    parser.add_argument("--number", type=int, default=100, help="how many faults are drawn and tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", type=int, default=100, help="how many tests are run for a fault at most")
    parser.add_argument(
        "--seconds", type=float, default=180, help="how long they may take; longer counts as caught"
    )
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.action == "record":
        return record(arguments.map, arguments.paths, arguments.workers)
    if arguments.drawn is None:
        parser.error("run needs --drawn FILE")
    lines = lines_of(arguments.map)
    if not arguments.drawn.is_file():
        write(arguments.drawn, ((mutation, "") for mutation in drawn(lines, arguments.number, arguments.seed)))
    faults = read(arguments.drawn)[: arguments.number]
    preload()
    found = dict(faults)
    for mutation, by in outcomes(asked(faults, lines, arguments.tests), arguments.workers, arguments.seconds):
        found[mutation] = by
        source = (ROOT / mutation.file).read_bytes()
        sys.stdout.write(f"{'caught' if by else 'NOT CAUGHT'} {mutation.shown(source)} {by}\n")
        sys.stdout.flush()
        # Whoever ends it early keeps what was found.
        write(arguments.drawn, (dict(read(arguments.drawn)) | found).items())
    sys.stdout.write(f"{sum(map(bool, found.values()))} of {len(found)} caught\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
