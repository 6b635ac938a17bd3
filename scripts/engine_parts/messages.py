"""Messages for the user, on stderr only: a shell evaluates stdout."""

import sys


class EnginesError(Exception):
    """An error that the user can act on; shown without a traceback."""


def say(text: str) -> None:
    print(f"engines: {text}", file=sys.stderr, flush=True)
