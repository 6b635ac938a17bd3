"""Names of settings that other programs use as well, beside ours, which win: in the environment, and in a
file `.env` of the folder that `serve` is started in.

Such a file may have come with a folder that somebody else filled. So it says where engines and the model are and
nothing else, is not believed unless it is the user's own, and names no place to which a key of the environment
would be sent.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = ".env"
MOST_BYTES = 65_536

FIELDS = {
    "MONGODB_URI": "mongo_url",
    "QDRANT_URL": "qdrant_url",
    "EMBEDDING_MODEL": "embedding_model",
}
# Whoever has one of these in the environment has said whom it is for.
CREDENTIALS = {
    "MONGODB_URI": ("TOOLSCRIPT_MONGO_WRITER_URL",),
    "QDRANT_URL": (
        "TOOLSCRIPT_QDRANT_API_KEY",
        "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE",
        "TOOLSCRIPT_QDRANT_CLIENT_KEY",
    ),
}


@dataclass
class SecondNames:
    """`values` by our names of fields. `told` says which names were taken from where, and which not."""

    values: dict[str, Any] = field(default_factory=dict)
    by_place: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        return "; ".join(
            [*(f"{', '.join(names)} from {place}" for place, names in self.by_place.items()), *self.left]
        )

    def take(self, name: str, value: str, place: str) -> None:
        self.values[FIELDS[name]] = value
        self.by_place.setdefault(place, []).append(name)


def second_names(folder: Path | None = None) -> SecondNames:
    """`folder` is where `.env` is looked for; None: nowhere."""
    given = {name.upper(): value for name, value in os.environ.items()}
    open_ones = [name for name, ours in FIELDS.items() if f"TOOLSCRIPT_{ours.upper()}" not in given]
    found = SecondNames()
    for name in open_ones:
        value = given.get(name, "").strip()
        if value:
            found.take(name, value, "the environment")
    if folder is not None:
        _take_from_file(
            found, folder / FILE, [name for name in open_ones if not given.get(name, "").strip()], given
        )
    return found


def _take_from_file(found: SecondNames, file: Path, wanted: list[str], given: Mapping[str, str]) -> None:
    try:
        text = _own_text(file)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        found.left.append(f"{FILE} is not used: {_reason(error)}")
        return
    values = _values(text)
    for name in FIELDS:
        if name not in wanted or not values.get(name):
            continue
        if held := [one for one in CREDENTIALS.get(name, ()) if given.get(one)]:
            found.left.append(f"{name} of {FILE} is not used: {held[0]} is set, and goes to no address of a file")
        else:
            found.take(name, values[name], FILE)


def _own_text(file: Path) -> str:
    """Looked at as it is opened, and not before: it could be another one by then."""
    if not hasattr(os, "geteuid"):
        raise ValueError("here nobody can say whose it is")
    # What would wait for a writer is opened at once, and is no file.
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as stream:
        seen = os.fstat(stream.fileno())
        if not stat.S_ISREG(seen.st_mode):
            raise ValueError("it is no file")
        if seen.st_uid != os.geteuid():
            raise ValueError("it belongs to another user")
        if seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("others can write to it")
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError("it is too large")
    return content.decode("utf-8", "replace")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or "it cannot be read"
    return str(error)


def _values(text: str) -> dict[str, str]:
    """Lines `NAME=value`, with or without quotes around the value; the last of a name counts."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals:
            values[name.strip().upper()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return value.partition(" #")[0].strip()
