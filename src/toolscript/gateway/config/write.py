"""Edits of a config file: keep comments, write atomically, make a backup."""

import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.jsonc import is_strict, parse, read_text, without_comments

PRIVATE = 0o600
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]', re.DOTALL)
_COLON = re.compile(r"\s*:")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def replace_text(path: Path, before: str | None, after: str, *, backup: Path, mode: int | None = None) -> None:
    """Write `after` if the file still contains `before`. Without a mode, keep the file's, or use a private one."""
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    # Keep a symbolic link: write its target.
    real = path.resolve()
    try:
        kept = stat.S_IMODE(real.stat().st_mode) if before is not None else PRIVATE
        if before is not None:
            write_file(backup, before, PRIVATE)
        write_file(real, after, kept if mode is None else mode)
    except OSError as error:
        raise ConfigInvalid(
            f"cannot write {path}: {error.strerror}", hint="check who may write there, and the space left"
        ) from None


def remove(path: Path, before: str | None) -> None:
    """Remove the file if it still contains `before`."""
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigInvalid(f"cannot remove {path}: {error.strerror}", hint="remove it by hand") from None


def write_file(path: Path, text: str, mode: int = PRIVATE) -> None:
    """Write atomically: readers see the old or the new file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk. Windows cannot open folders, and does not need it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def with_members(text: str, section: str, members: Mapping[str, object], path: Path) -> str:
    """Insert the members at the end of the section, which is created if missing."""
    text = text if text.strip() else "{}\n"
    before = parse(text, path).value
    if not isinstance(before, dict) or not isinstance(before.get(section, {}), dict):
        raise ConfigInvalid(f"{section} in {path} is not an object", hint=f'write "{section}": {{}} there')
    plain = without_comments(text)
    root = plain.index("{")
    _, values = _scan(plain, root)
    if section in before:
        after = _insert(text, plain, values[section], members, depth=2)
    else:
        after = _insert(text, plain, root, {section: members}, depth=1)
    return _require_expected(text, after, before | {section: {**before.get(section, {}), **members}}, path)


def _require_expected(text: str, after: str, expected: object, path: Path) -> str:
    """Parse the edited text again, and raise if it is not as expected."""
    if parse(after, path).value != expected or (is_strict(text) and not is_strict(after)):
        raise ConfigInvalid(f"cannot add to {path} without harm", hint="add the servers by hand")
    return after


def _insert(text: str, plain: str, opening: int, members: Mapping[str, object], depth: int) -> str:
    closing, _ = _scan(plain, opening)
    last = len(plain[:closing].rstrip()) - 1
    comma = "" if plain[last] in "{," else ","
    step = match[1] if (match := _INDENT.search(text)) else "  "
    block = json.dumps(members, indent=step, ensure_ascii=False)[1:-1].strip("\n")
    if depth > 1:
        block = "\n".join(step * (depth - 1) + line for line in block.split("\n"))
    kept = text[last + 1 : closing].rstrip()
    whole = f"{text[: last + 1]}{comma}{kept}\n{block}\n{step * (depth - 1)}{text[closing:]}"
    return whole if "\r\n" not in text else re.sub(r"(?<!\r)\n", "\r\n", whole)


def _scan(plain: str, opening: int) -> tuple[int, dict[str, int]]:
    """Return the position where the object ends, and the position of each key's object or list."""
    depth, key, values = 0, None, {}
    for token in _TOKEN.finditer(plain, opening):
        mark = token[0]
        if depth == 1 and mark[0] == '"' and _COLON.match(plain, token.end()):
            key = json.loads(mark)
        elif depth == 1 and mark in "{[" and key is not None:
            values[key], key = token.start(), None
        depth += (mark in "{[") - (mark in "}]")
        if not depth:
            return token.start(), values
    raise ValueError("unclosed object, although the text was parsed before")
