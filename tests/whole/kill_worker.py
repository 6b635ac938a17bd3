"""Imports a catalog and kills its worker again and again, at random moments and at every named step.

By hand, on any catalog and the engines of the environment, in a database and under an alias of their own:

    python -m tests.whole.kill_worker CATALOG.jsonl --kills 50 --longest 20
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.whole.commands import command, environment, run
from toolscript.sync.indexer import Step

ROOT = Path(__file__).parent.parent.parent


def kill_at_random(extra: Mapping[str, str], kills: int, longest: float, seed: int) -> int:
    """Starts a worker and kills it after a random time, so often; answers how many it really killed."""
    chance = random.Random(seed)
    killed = 0
    for number in range(kills):
        worker = subprocess.Popen(
            command("worker", "--drain"), env=environment(extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            worker.communicate(timeout=chance.uniform(0.3, longest))
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
            killed += 1
        sys.stderr.write(
            f"kill {number + 1} of {kills}: {'killed' if worker.returncode < 0 else 'had finished'}\n"
        )
    return killed


def kill_at_step(extra: Mapping[str, str], step: Step, times: int = 1) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.whole.worker_that_dies", step.value, str(times)],
        env=environment(extra),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, f"it was to die at {step}: {done.returncode} {done.stderr}"


def examine(extra: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(run(extra, "doctor", "--index", "--json").stdout)
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("catalog")
    asked.add_argument("--kills", type=int, default=50)
    asked.add_argument("--longest", type=float, default=20.0, help="seconds a worker lives at the most")
    asked.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = asked.parse_args()
    extra = {name: value for name, value in os.environ.items() if name.startswith("TOOLSCRIPT_")}
    sys.stderr.write(f"seed {given.seed}\n{run(extra, 'import', given.catalog).stdout}")
    for step in Step:
        kill_at_step(extra, step)
    killed = kill_at_random(extra, given.kills, given.longest, given.seed)
    drained = run(extra, "worker", "--drain", "--json").stdout.strip()
    sys.stdout.write(
        f"killed at {len(Step)} named steps and {killed} random moments (seed {given.seed}); then {drained}\n"
        f"doctor: {json.dumps(examine(extra))}\n"
    )


if __name__ == "__main__":
    main()
