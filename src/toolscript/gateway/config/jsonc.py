"""JSON with comments and trailing commas; errors name the line."""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from toolscript.core.errors import ConfigInvalid
from toolscript.core.own_files import NotRegular, is_own, open_regular

MAX_BYTES = 32 * 1024 * 1024

# An unclosed string or comment matches to the end, so the text is scanned only once.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True)
class Document:
    """Content of a file. `repeated` are keys that occur twice in one object; the last one counts."""

    text: str
    value: object
    repeated: tuple[str, ...] = ()


def read_text(path: Path, *, only_ours: bool = False) -> str | None:
    """Return the text, None if there is no file. `only_ours`: refuse files of other users."""
    try:
        content = _content(path, only_ours=only_ours)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular:
        raise ConfigInvalid(f"{path} is not a regular file", hint="write the config into a plain file") from None
    except OSError as error:
        raise ConfigInvalid(
            f"cannot read {path}: {error.strerror}", hint="check its type and permissions"
        ) from None
    if len(content) > MAX_BYTES:
        raise ConfigInvalid(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint="is it a config file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigInvalid(f"{path} is not UTF-8: byte {error.start}", hint="save it as UTF-8") from None


def _content(path: Path, *, only_ours: bool) -> bytes:
    """Read the bytes. A symbolic link is followed, but it must belong to this user, too."""
    with os.fdopen(open_regular(path, follow_links=True), "rb") as file:
        if only_ours and not (is_own(os.fstat(file.fileno())) and is_own(path.lstat())):
            raise ConfigInvalid(f"{path} belongs to another user", hint="copy it, and it is yours")
        return file.read(MAX_BYTES + 1)


def is_file(path: Path) -> bool:
    """Return whether it is a file; False also if the path cannot be checked."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_document(path: Path) -> Document | None:
    """Parse a file of this user only, because it names programs to start."""
    text = read_text(path, only_ours=True)
    return None if text is None else parse(text, path)


def parse(text: str, path: Path) -> Document:
    # An editor that saves in two steps leaves the file empty for a moment. That must not stop all servers.
    if not text.strip():
        raise ConfigInvalid(f"{path} is empty", hint='write {"mcpServers": {}} for no servers')
    repeated: list[str] = []

    def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
        together = dict(members)
        if len(together) < len(members):
            repeated.extend(name for name, times in Counter(name for name, _ in members).items() if times > 1)
        return together

    try:
        value = json.loads(
            _without_trailing_commas(without_comments(text)), object_pairs_hook=pairs, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        raise _not_json(path, error) from None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else "a number that is none"
        raise ConfigInvalid(f"{path} is not JSON: {why}", hint="correct the file") from None
    return Document(text, value, tuple(repeated))


def without_comments(text: str) -> str:
    """Replace comments by blanks, so that all other characters keep their position."""
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)


def is_strict(text: str) -> bool:
    """Return whether the text is strict JSON."""
    stripped = without_comments(text)
    return stripped == text and _without_trailing_commas(text) == text


def _without_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)


def _blank(comment: str) -> str:
    return re.sub(r"[^\r\n]", " ", comment)


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _not_json(path: Path, error: json.JSONDecodeError) -> ConfigInvalid:
    where: Mapping[str, object] = {"file": str(path), "line": error.lineno, "column": error.colno}
    return ConfigInvalid(
        f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}",
        hint=f"correct line {error.lineno} of {path}",
        details=where,
    )
