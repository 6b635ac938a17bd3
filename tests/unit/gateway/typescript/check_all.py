"""Compile the client of every tool in a file: `python -m tests.unit.gateway.typescript.check_all FILE`."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.unit.gateway.typescript.compiling import errors_of
from tests.unit.gateway.typescript.tools import catalog_tools
from toolscript.core.items import Item
from toolscript.gateway.typescript.module import typescript_module

TOOLS_PER_MODULE = 500
TOOLS_PER_RUN = 10_000


@dataclass
class Checked:
    tools: int = 0
    full_bytes: int = 0
    compact_bytes: int = 0
    emit_seconds: float = 0.0
    compile_seconds: float = 0.0


def check(items: Sequence[Item], so_far: Checked) -> list[str]:
    """Return the compile errors of the full and the compact client of the tools."""
    began = time.monotonic()
    modules = dict[str, str]()
    for start in range(0, len(items), TOOLS_PER_MODULE):
        some = items[start : start + TOOLS_PER_MODULE]
        modules[f"full{start}"] = typescript_module(some)
        modules[f"compact{start}"] = typescript_module(some, compact=True)
    emitted = time.monotonic()
    errors = errors_of(modules)
    so_far.tools += len(items)
    so_far.full_bytes += sum(len(text.encode()) for name, text in modules.items() if name.startswith("full"))
    so_far.compact_bytes += sum(len(text.encode()) for name, text in modules.items() if name.startswith("compact"))
    so_far.emit_seconds += emitted - began
    so_far.compile_seconds += time.monotonic() - emitted
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="stop after this many tools")
    arguments = parser.parse_args()
    tools = islice(catalog_tools(arguments.file), arguments.limit)
    checked, errors = Checked(), list[str]()
    while some := list(islice(tools, TOOLS_PER_RUN)):
        errors += check(some, checked)
    sys.stdout.write("".join(f"{line}\n" for line in errors[:50]))
    sys.stdout.write(
        f"{checked.tools:,} tools, {len(errors)} errors, {checked.emit_seconds:.1f} s to write both forms, "
        f"{checked.compile_seconds:.1f} s to compile them; full {checked.full_bytes:,} bytes, "
        f"compact {checked.compact_bytes:,} bytes\n"
    )
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
