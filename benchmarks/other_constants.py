"""`toolscript` with other values for constants, which measurements and tests need and no installation does.

python -m benchmarks.other_constants toolscript.server.serve.CACHED_QUERIES=1 -- serve --port 8080
"""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence


def command(constants: Mapping[str, float], *arguments: str) -> list[str]:
    """Constants by the full names of where they are used."""
    if not constants:
        return [sys.executable, "-m", "toolscript", *arguments]
    given = [f"{name}={json.dumps(value)}" for name, value in constants.items()]
    return [sys.executable, "-m", __name__, *given, "--", *arguments]


def main(arguments: Sequence[str]) -> None:
    end = arguments.index("--")
    for given in arguments[:end]:
        name, _, value = given.partition("=")
        change(name, json.loads(value))
    from toolscript.__main__ import main as toolscript

    sys.argv[1:] = arguments[end + 1 :]
    toolscript()


def change(name: str, value: float) -> None:
    module_name, _, constant = name.rpartition(".")
    module = importlib.import_module(module_name)
    # A misspelt name would measure the usual value.
    if not hasattr(module, constant):
        raise SystemExit(f"there is no {name}")
    setattr(module, constant, value)


if __name__ == "__main__":
    main(sys.argv[1:])
