"""Compile clients of hostile tools, and prove that they contain no injected code.

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
    """A client, and the only tools it should call."""

    name: str
    text: str
    tools: tuple[tuple[str, str], ...]


def hostile_modules(tools: int, seed: int) -> list[Module]:
    """Yield full and compact clients in turn."""
    hostile, modules = Hostile(seed), list[Module]()
    for number in range(0, tools, TOOLS_PER_MODULE):
        items = [hostile.item() for _ in range(min(TOOLS_PER_MODULE, tools - number))]
        text = typescript_module(items, compact=bool(number // TOOLS_PER_MODULE % 2))
        modules.append(Module(f"hostile{number}", text, _tools(items)))
    return modules


def _tools(items: list[Item]) -> tuple[tuple[str, str], ...]:
    """Return each tool once, without lone surrogates, as in an address."""
    names = dict.fromkeys((item.server, item.name) for item in items)
    return tuple((_whole(server), _whole(name)) for server, name in names)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def structure_errors(modules: list[Module]) -> list[str]:
    request = {
        "runtime": CALL_TOOL,
        "modules": [{"name": module.name, "text": module.text, "tools": module.tools} for module in modules],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(request, file)
        file.flush()
        errors: list[str] = json.loads(run_check("structure.mjs", str(Path(file.name))))
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=9)
    arguments = parser.parse_args()
    began = time.monotonic()
    modules = hostile_modules(arguments.tools, arguments.seed)
    errors = [*errors_of({module.name: module.text for module in modules}), *structure_errors(modules)]
    sys.stdout.write("".join(f"{line}\n" for line in errors[:50]))
    characters = sum(len(module.text) for module in modules)
    sys.stdout.write(
        f"{arguments.tools:,} hostile tools in {len(modules)} modules of {characters:,} "
        f"characters, seed {arguments.seed}: {len(errors)} errors, {time.monotonic() - began:.1f} s\n"
    )
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
