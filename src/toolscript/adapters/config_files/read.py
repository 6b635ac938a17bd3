"""Config files: which there are, and what they say together.

The user's file is `~/.toolscript.json`. The project's is the nearest `.toolscript.json`, from the working folder
upwards, up to but not including the home folder, or else up to the root of the file system. A server of the
project replaces the user's server of the same name as a whole. A file that is named explicitly is the only one.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolscript.adapters.config_files.entries import read_entry
from toolscript.adapters.config_files.jsonc import Document, is_file, read_document, read_text
from toolscript.adapters.config_files.problems import Problem, Severity
from toolscript.errors import ConfigInvalid
from toolscript.model.servers import ServerSpec

FILE_NAME = ".toolscript.json"
SECTIONS = ("servers", "mcpServers")

_EXPECTED = '{"mcpServers": {"name": {"command": ...}}}'


@dataclass(frozen=True)
class Config:
    """`servers` by name, `files` that were really read, and `problems` that keep servers out or have no effect."""

    servers: tuple[ServerSpec, ...] = ()
    files: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()


def config_paths(home: Path, start: Path, explicit: Path | None = None) -> list[Path]:
    """The files to read, the later one wins. Those that do not exist yet are named too, so they can be watched."""
    if explicit is not None:
        path = explicit.absolute()
        if read_text(path) is None:
            raise ConfigInvalid(
                f"there is no config file {path}",
                hint="give the path of one, or leave --config out to use the usual ones",
            )
        return [path]
    home, start = home.absolute(), start.absolute()
    user = home / FILE_NAME
    if start.resolve() == home.resolve():
        return [user]
    return [user, next(_project_files(home, start), start / FILE_NAME)]


def read_config(paths: Sequence[Path], environment: Mapping[str, str]) -> Config:
    """What the files say together. Paths without a file are passed over; one bad server never harms another."""
    entries: dict[str, tuple[object, Path]] = {}
    files: list[Path] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(path.absolute() for path in paths):
        if (document := read_document(path)) is not None:
            files.append(path)
            entries |= {name: (raw, path) for name, raw in server_entries(document, path).items()}
            problems += _problems_of_file(document, path)
    servers: list[ServerSpec] = []
    for name, (raw, path) in sorted(entries.items()):
        spec, found = read_entry(name, raw, path, environment)
        servers += [spec] if spec else []
        problems += found
    return Config(tuple(servers), tuple(files), tuple(problems))


def server_entries(document: Document, path: Path) -> dict[str, object]:
    """The raw entries of a file by name; of two sections `mcpServers` wins."""
    if not isinstance(document.value, dict):
        raise ConfigInvalid(f"{path} is not a JSON object", hint=f"write {_EXPECTED}")
    entries: dict[str, object] = {}
    for section in SECTIONS:
        value = document.value.get(section)
        if value is not None and not isinstance(value, dict):
            raise ConfigInvalid(f"{section} in {path} is not an object", hint=f"write {_EXPECTED}")
        entries |= value or {}
    return entries


def _problems_of_file(document: Document, path: Path) -> Iterator[Problem]:
    keys = set(document.value) if isinstance(document.value, dict) else set()
    if keys - {"$schema", "inputs"} and not keys & set(SECTIONS):
        yield Problem("", path, "names no servers", f"put them under mcpServers: {_EXPECTED}", Severity.WARNING)
    for name in sorted(set(document.repeated) & {*server_entries(document, path), *SECTIONS}):
        server, subject = ("", f"{name} is") if name in SECTIONS else (name, "its name may be")
        message = f"{subject} written twice; the last one counts"
        yield Problem(server, path, message, "make them one", Severity.WARNING)


def _project_files(home: Path, start: Path) -> Iterator[Path]:
    real_home = home.resolve()
    for folder in (start, *start.parents):
        if folder.resolve() == real_home:
            return
        path = folder / FILE_NAME
        if is_file(path) and _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    """A config starts programs. One that another user left in a folder where everybody may write is not taken."""
    user = getattr(os, "getuid", None)
    if user is None or path.stat().st_uid in {user(), 0}:
        return True
    folder = path.parent.stat()
    return folder.st_uid == path.stat().st_uid and not folder.st_mode & stat.S_IWOTH
