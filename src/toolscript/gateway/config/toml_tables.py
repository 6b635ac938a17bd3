"""Edits of a TOML file: one table is added or removed, everything else stays as it is written."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolscript.core.errors import ConfigInvalid

_HEADER = re.compile(r"\s*\[\[?\s*[\w\"'][^\]]*\]\]?\s*(#.*)?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def parse_toml(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise ConfigInvalid(f"{path} is not TOML", hint="correct the file first") from None


def with_table(text: str, section: str, name: str, entry: Mapping[str, object], path: Path) -> str:
    """Append the entry as a table of the section."""
    table = "\n".join([f"[{section}.{name}]", *_lines_of(entry)]) + "\n"
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = text + gap + table
    value = parse_toml(text, path)
    servers = value.get(section, {})
    added = {**servers, name: dict(entry)} if isinstance(servers, dict) else None
    if _loaded(after) != {**value, section: added}:
        raise ConfigInvalid(f"cannot add to {path} without harm", hint=f"add it by hand:\n{table}")
    return after


def without_table(text: str, section: str, name: str, path: Path) -> str:
    """Remove the entry of the section, however it is written. Comments outside of it stay."""
    value = parse_toml(text, path)
    servers = value.get(section)
    left = {key: item for key, item in servers.items() if key != name} if isinstance(servers, dict) else {}
    after = "".join(_other_lines(text, section, name))
    # A section without tables is the same as none.
    expected = {key: item for key, item in {**value, section: left}.items() if key != section or left}
    if {key: item for key, item in (_loaded(after) or {}).items() if key != section or item} != expected:
        raise ConfigInvalid(
            f"cannot take the server {name!r} out of {path} without harm", hint="take it out by hand"
        )
    return after


def _lines_of(entry: Mapping[str, object]) -> Iterator[str]:
    """Yield the entry's lines; strings and lists of TOML are written as in JSON."""
    for key, value in entry.items():
        if not isinstance(value, Mapping):
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    for key, value in entry.items():
        if isinstance(value, Mapping):
            members = ", ".join(f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in value.items())
            yield f"{key} = {{{members}}}"


def _other_lines(text: str, section: str, name: str) -> Iterator[str]:
    """Yield the text without the entry: its tables, each with the blank line before it, and keys that set it."""
    gap = ""
    for block in _blocks(text):
        is_ours = re.match(rf"\s*\[\s*{_key(section)}\s*\.\s*{_key(name)}\s*[\].]", block[0]) is not None
        rest = _trailing(block) if is_ours else _without_keys(block, _key(section), _key(name))
        if not is_ours:
            yield gap
        gap = rest.pop() if rest and not rest[-1].strip() else ""
        yield from rest
    yield gap


def _without_keys(block: list[str], section: str, name: str) -> list[str]:
    """Return the lines of a table, or of the beginning, without those that set the entry."""
    if re.match(rf"\s*\[\s*{section}\s*\]", block[0]):
        return [line for line in block if not re.match(rf"\s*{name}\s*[.=]", line)]
    if not _HEADER.match(block[0]):
        return [line for line in block if not re.match(rf"\s*{section}\s*\.\s*{name}\s*[.=]", line)]
    return block


def _key(name: str) -> str:
    """Return the pattern of a key, quoted or not."""
    return rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"


def _blocks(text: str) -> list[list[str]]:
    """Return the lines before the first header, which may be none, then those of each table."""
    blocks: list[list[str]] = [[]]
    for line in _LINE.findall(text):
        if _HEADER.match(line):
            blocks.append([])
        blocks[-1].append(line)
    return [block for block in blocks if block]


def _trailing(block: list[str]) -> list[str]:
    """Return the blank lines and comments after the last key of a table: they belong to what follows."""
    last = max(index for index, line in enumerate(block) if line.strip() and not line.lstrip().startswith("#"))
    return block[last + 1 :]


def _loaded(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
