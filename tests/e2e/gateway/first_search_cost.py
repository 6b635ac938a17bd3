"""Cost of the first search of a fresh installation without a network, whose servers' tools are cached.

By hand, with a catalog of JSON lines:

    python -m tests.e2e.gateway.first_search_cost --tools tools.jsonl --runs 5

Each search runs in a home of its own: with keyword search alone, with the built-in model, and with the default
model, which cannot be downloaded, so that the built-in one stands in for it.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.commands import command
from tests.e2e.gateway.catalogs import catalog_servers
from tests.e2e.gateway.machines import NO_NETWORK

QUERY = "put my notes somewhere I can find them again"
CHOICES = {
    "keyword search alone": "none",
    "built-in model": "builtin",
    "no model to be had": "Xenova/bge-small-en-v1.5",
}


def run(home: Path, model: str, *words: str) -> tuple[float, float, str]:
    """Return the processor time, the time and the output of a command."""
    own = {**os.environ, **NO_NETWORK, "HOME": str(home), "TOOLSCRIPT_SEARCH_MODEL": model}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command(*words), env=own, cwd=home, capture_output=True, text=True, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    names = sorted({json.loads(line)["server"] for line in arguments.tools.read_text("utf-8").splitlines()})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        servers = catalog_servers(arguments.tools.resolve(), names)
        (home / ".toolscript.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        run(home, "none", "list-tools")
        # An installation that has not searched yet has analysed no tool.
        shutil.rmtree(home / ".toolscript" / "cache" / "words", ignore_errors=True)
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in CHOICES}
        for number in range(arguments.runs):
            for name, model in CHOICES.items():
                fresh = shutil.copytree(home, Path(folder) / f"{number}-{model.replace('/', '-')}")
                cpu, wall, output = run(fresh, model, "search", QUERY, "--threshold", "0", "--json")
                costs[name].append((cpu, wall))
        sys.stdout.write(f"{len(names)} servers, first search of each kind, median of {arguments.runs}\n")
        for name, pairs in costs.items():
            cpu, wall = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            sys.stdout.write(f"{name}: processor time {cpu:.2f} s, wall {wall:.2f} s\n")
        sys.stdout.write(f"the last answer was ranked by {json.loads(output)['model']}\n")


if __name__ == "__main__":
    main()
