"""Compile clients of hostile tools, and prove that nothing in them is theirs.

`python -m tests.unit.gateway.typescript.check_hostile`
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.npm_tools import run_check
from tests.unit.gateway.typescript.compiling import errors_of
from tests.unit.gateway.typescript.hostile import Hostile
from toolscript.core.items import Item
from toolscript.gateway.typescript.module import CALL_TOOL, typescript_module

TOOLS_PER_MODULE = 50


@dataclass(frozen=True)
class Module:
    """A client, and the tools it should call and nothing else."""

    name: str
    text: str
    tools: tuple[tuple[str, str], ...]


def hostile_modules(tools: int, seed: int) -> list[Module]:
    """Full and compact in turn."""
    hostile, modules = Hostile(seed), list[Module]()
    for number in range(0, tools, TOOLS_PER_MODULE):
        items = [hostile.item() for _ in range(min(TOOLS_PER_MODULE, tools - number))]
        text = typescript_module(items, compact=bool(number // TOOLS_PER_MODULE % 2))
        modules.append(Module(f"hostile{number}", text, _tools(items)))
    return modules


def _tools(items: list[Item]) -> tuple[tuple[str, str], ...]:
    """Each tool once, spelled as an address can spell it: without halves of characters."""
    given = dict.fromkeys((one.server, one.name) for one in items)
    return tuple((_whole(server), _whole(name)) for server, name in given)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def structure_errors(modules: list[Module]) -> list[str]:
    given = {
        "runtime": CALL_TOOL,
        "modules": [{"name": one.name, "text": one.text, "tools": one.tools} for one in modules],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(given, file)
        file.flush()
        found: list[str] = json.loads(run_check("structure.mjs", str(Path(file.name))))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=9)
    given = parser.parse_args()
    began = time.monotonic()
    modules = hostile_modules(given.tools, given.seed)
    errors = [*errors_of({one.name: one.text for one in modules}), *structure_errors(modules)]
    sys.stdout.write("".join(f"{line}\n" for line in errors[:50]))
    sys.stdout.write(
        f"{given.tools:,} hostile tools in {len(modules)} modules of {sum(len(one.text) for one in modules):,} "
        f"characters, seed {given.seed}: {len(errors)} errors, {time.monotonic() - began:.1f} s\n"
    )
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
