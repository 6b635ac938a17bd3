"""What a person asks of every program, and what we ask of the libraries we run."""

import os


def keep_libraries_quiet() -> None:
    """ONNX Runtime tells its maker about every start and leaves an id in the home folder, unless told not to."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def colour_is_unwanted() -> bool:
    """https://no-color.org: set to anything but nothing."""
    return bool(os.environ.get("NO_COLOR"))
