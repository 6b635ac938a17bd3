"""Cost of one hanging and one crashing server for the others, command by command.

By hand, with a config file of servers that work (they are started):

    python -m tests.e2e.gateway.failing_servers_cost --config servers.json --model FOLDER --runs 5

Each command runs in its own home with and without the two, in turn, after a warm-up run.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.commands import command
from tests.e2e.gateway.machines import mcp_server

COMMANDS = ("search read-a-file", "list-tools", "get-types", "list-servers", "doctor", "call {tool} {{}}")


@dataclass(frozen=True)
class Cost:
    cpu: float
    wall: float


def run(home: Path, words: list[str], model: str) -> Cost:
    environment = {**os.environ, "HOME": str(home), "TOOLSCRIPT_SEARCH_MODEL": model}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command(*words), env=environment, cwd=home, capture_output=True, check=False)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall)


def home_with(folder: Path, servers: Mapping[str, object]) -> Path:
    folder.mkdir()
    (folder / ".toolscript.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tool", required=True, help="a tool that can be called without arguments")
    arguments = parser.parse_args()
    good = json.loads(arguments.config.read_text("utf-8"))["mcpServers"]
    bad = {"hangs": mcp_server("faulty", "hangs_at_start"), "crashes": mcp_server("faulty", "dies_at_start")}
    with tempfile.TemporaryDirectory() as folder:
        without, beside = home_with(Path(folder) / "a", good), home_with(Path(folder) / "b", {**good, **bad})
        for home in (without, beside):
            first = run(home, ["search", "read a file"], arguments.model)
            sys.stdout.write(f"first search {first.wall:.1f} s, {first.cpu:.1f} s of processor time\n")
        for text in COMMANDS:
            words = text.format(tool=arguments.tool).split()
            costs = [
                (run(without, words, arguments.model), run(beside, words, arguments.model))
                for _ in range(arguments.runs)
            ]
            cpu = [statistics.median(item.cpu for item in side) for side in zip(*costs, strict=True)]
            wall = [statistics.median(item.wall for item in side) for side in zip(*costs, strict=True)]
            sys.stdout.write(
                f"{words[0]}: processor time {cpu[0]:.2f} and {cpu[1]:.2f} s ({cpu[1] / cpu[0]:.2f}), "
                f"wall {wall[0]:.2f} and {wall[1]:.2f} s ({(wall[1] - wall[0]) * 1000:+.0f} ms)\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
