"""Ingests a folder that keeps changing, and kills the process again and again, at random moments.

Then it runs to its end, and the contents of MongoDB and Qdrant are compared with those of a clean ingest of the
same folder into another library. By hand, on the engines of the environment, in libraries of their own:

    python -m tests.e2e.ingest.killed --kills 50 --files 300
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from tests.e2e.ingest.folder import Folder
from tests.e2e.ingest.holdings import differences, forget, holdings, named_library, opened
from tests.e2e.ingest.process import BEGUN, ingested
from toolscript.core.settings.service import Settings
from toolscript.knowledge.ingest.report import IngestReport
from toolscript.knowledge.model.ingest import IngestOutcome

ROOT = Path(__file__).parent.parent.parent.parent
MAX_SHOWN = 20


@dataclass
class Metrics:
    """Number of kills, their delays, and how many hit the work on a source."""

    killed: int = 0
    finished: int = 0
    lived: list[float] = field(default_factory=list)
    at_work: int = 0
    differences: list[str] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)


class Killing:
    def __init__(self, environment: Mapping[str, str], folder: Folder, seed: int) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")},
            **environment,
        }
        self._folder = folder
        self._chance = random.Random(seed)
        self.metrics = Metrics()

    def kill(self, longest: float) -> None:
        """Start it and kill it after a while, unless it ends before."""
        process = self._start()
        lives = self._chance.uniform(0.05, longest)
        try:
            _, errors = process.communicate(timeout=lives)
            assert process.returncode == 0, f"it ended by itself with {process.returncode}: {errors.decode()}"
            self.metrics.finished += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.metrics.killed += 1
            self.metrics.lived.append(lives)

    def finish(self) -> IngestReport:
        """Run to the end in this process."""
        with patch.dict(os.environ, self._environment, clear=True):
            report = ingested(str(self._folder.path))
        assert not report.skipped, report.skipped
        return report

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.e2e.ingest.process", str(self._folder.path)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=self._environment, cwd=ROOT, stdout=pipe, stderr=pipe)
        assert process.stdout is not None
        # No kills during imports.
        begun = process.stdout.readline().decode().strip()
        assert begun == BEGUN, f"it does not begin: {process.communicate()[1].decode()}"
        return process


def kill_often(engines: Settings, files: int, kills: int, longest: float, seed: int, disturbed: int) -> Metrics:
    with (
        tempfile.TemporaryDirectory() as path,
        named_library(engines) as battered,
        named_library(engines) as clean,
    ):
        folder = Folder(Path(path), files, seed)
        killing = Killing(battered, folder, seed)
        try:
            while killing.metrics.killed < kills:
                killing.kill(longest)
                _say(killing.metrics, kills, asyncio.run(_at_work(battered)))
                folder.disturb(disturbed)
            killing.finish()
            again = killing.finish()
            assert again.outcomes == {IngestOutcome.UNCHANGED: folder.count()}, again
            Killing(clean, folder, seed).finish()
            return asyncio.run(_compared(killing.metrics, battered, clean))
        finally:
            for environment in (battered, clean):
                asyncio.run(forget(environment))


async def _at_work(environment: dict[str, str]) -> Counter[str]:
    async with opened(environment) as (database, _):
        counts = {name: await database[name].count_documents({}) for name in ("sources", "chunks", "extractions")}
        return Counter({**counts, "claimed": await database["sources"].count_documents({"claim": {"$ne": None}})})


async def _compared(metrics: Metrics, battered: dict[str, str], clean: dict[str, str]) -> Metrics:
    item, other = await holdings(battered), await holdings(clean)
    metrics.differences = differences(item, other)
    metrics.counts = {kind: len(result) for kind, result in other.items()}
    return metrics


def _say(metrics: Metrics, kills: int, at_work: Counter[str]) -> None:
    metrics.at_work += bool(at_work["claimed"])
    sys.stderr.write(f"killed {metrics.killed} of {kills}, ended {metrics.finished}: {dict(at_work)}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds it lives at the most")
    parser.add_argument("--disturbed", type=int, default=20, help="files that change between two runs")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    sys.stderr.write(f"seed {arguments.seed}\n")
    began = time.monotonic()
    metrics = kill_often(
        Settings(), arguments.files, arguments.kills, arguments.longest, arguments.seed, arguments.disturbed
    )
    sys.stdout.write("\n".join(metrics.differences[:MAX_SHOWN]) + "\n" if metrics.differences else "")
    sys.stdout.write(
        f"seed {arguments.seed}: killed {metrics.killed} times, {metrics.at_work} of them with sources claimed, "
        "came "
        f"to its end {metrics.finished} times, {time.monotonic() - began:.0f} s; {dict(metrics.counts)}; "
        f"{len(metrics.differences)} differences\n"
    )
    return 1 if metrics.differences else 0


if __name__ == "__main__":
    sys.exit(main())
