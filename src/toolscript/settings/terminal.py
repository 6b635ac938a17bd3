"""What a person's terminal asks of every program."""

import os


def colour_is_unwanted() -> bool:
    """https://no-color.org: set to anything but nothing."""
    return bool(os.environ.get("NO_COLOR"))
