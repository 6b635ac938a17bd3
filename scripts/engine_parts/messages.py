"""What a person reads: stderr only, because stdout belongs to the shell that evals it."""

import sys


class EnginesError(Exception):
    """Something the person running the script can act on; shown without a traceback."""


def say(text: str) -> None:
    print(f"engines: {text}", file=sys.stderr, flush=True)
