"""`toolscript` with other values of constants, for measurements and tests.

python -m benchmarks.other_constants toolscript.server.serve.CACHED_QUERIES=1 -- serve --port 8080
"""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence


def command(constants: Mapping[str, float], *arguments: str) -> list[str]:
    """Return the command line. `constants`: values by full name, module included."""
    if not constants:
        return [sys.executable, "-m", "toolscript", *arguments]
    assignments = [f"{name}={json.dumps(value)}" for name, value in constants.items()]
    return [sys.executable, "-m", __name__, *assignments, "--", *arguments]


def main(arguments: Sequence[str]) -> None:
    end = arguments.index("--")
    for assignment in arguments[:end]:
        name, _, value = assignment.partition("=")
        change(name, json.loads(value))
    from toolscript.__main__ import main as toolscript

    sys.argv[1:] = arguments[end + 1 :]
    toolscript()


def change(name: str, value: float) -> None:
    module_name, _, constant = name.rpartition(".")
    module = importlib.import_module(module_name)
    # With a misspelt name, the default value would be measured.
    if not hasattr(module, constant):
        raise SystemExit(f"there is no {name}")
    setattr(module, constant, value)


if __name__ == "__main__":
    main(sys.argv[1:])
