"""Which files lie in a folder: always in the same order, without links, hidden ones and what nobody can read."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolscript.adapters.source_files.kinds import is_known
from toolscript.errors import NotFound

MOST_FILES = 1_000_000
MOST_DEPTH = 64


@dataclass(frozen=True)
class ListedFile:
    """`path` is absolute, with `/`. With a `problem`, nothing of it can be read, nor of what lies in it."""

    path: str
    problem: str = ""


def list_files(path: str) -> Iterator[ListedFile]:
    """The file itself, or the files of known kinds in a folder. A link that is named itself is followed: whoever
    names it means it."""
    try:
        named = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(f"there is no {path}") from error
    if not named.is_dir():
        yield ListedFile(named.as_posix())
        return
    for count, found in enumerate(_in_folder(str(named))):
        if count >= MOST_FILES:
            yield ListedFile(named.as_posix(), f"there are more than {MOST_FILES:,} files in it")
            return
        yield found


def _in_folder(folder: str) -> Iterator[ListedFile]:
    """Depth first, by name; what is yet to be looked at waits in a list, last first."""
    waiting: list[tuple[str, int, bool]] = [(folder, 0, True)]
    while waiting:
        path, depth, is_folder = waiting.pop()
        if not is_folder:
            yield _listed(path)
            continue
        if depth > MOST_DEPTH:
            yield _listed(path, "its folders are nested too deeply")
            continue
        try:
            with os.scandir(path) as entries:
                inner = sorted(_worth_a_look(entries), key=lambda one: one.name, reverse=True)
        except OSError as error:
            yield _listed(path, f"the folder cannot be read: {error.strerror}")
            continue
        waiting.extend((one.path, depth + 1, one.is_dir(follow_symlinks=False)) for one in inner)


def _worth_a_look(entries: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
    for entry in entries:
        if not entry.name.startswith(".") and (entry.is_dir(follow_symlinks=False) or is_known(entry.name)):
            yield entry


def _listed(path: str, problem: str = "") -> ListedFile:
    """A name that is not text cannot be stored, nor shown."""
    readable = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if readable != path:
        return ListedFile(readable, problem or "its name is not UTF-8")
    return ListedFile(path, problem)
