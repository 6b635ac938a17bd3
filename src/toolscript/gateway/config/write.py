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
from toolscript.core.own_files import is_own
from toolscript.gateway.config.jsonc import is_strict, parse, read_text, without_comments

PRIVATE = 0o600
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]', re.DOTALL)
_COLON = re.compile(r"\s*:")
_COMMA = re.compile(r"\s*,")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def replace_text(
    path: Path, before: str | None, after: str, *, backup: Path | None, mode: int | None = None
) -> None:
    """Write `after` if the file still contains `before`. Without a mode, keep the file's, or use a private one.

    The backup gets the time of the file: while they are equal, nobody has written the file since. Without one
    the text is put back from a backup, which stays until that is done.
    """
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    # Keep a symbolic link: write its target.
    real = path.resolve()
    try:
        kept = stat.S_IMODE(real.stat().st_mode) if before is not None else PRIVATE
        if before is not None and backup is not None:
            write_file(backup, before, PRIVATE)
        write_file(real, after, kept if mode is None else mode)
        if before is not None and backup is not None:
            written = real.stat().st_mtime_ns
            os.utime(backup, ns=(written, written))
    except OSError as error:
        raise ConfigInvalid(
            f"cannot write {path}: {error.strerror}", hint="check who may write there, and the space left"
        ) from None


def read_backup(backup: Path) -> str | None:
    """Return what a backup holds; None without one, and for one that another user owns or can write."""
    try:
        status = backup.lstat()
    except OSError:
        return None
    is_others = not is_own(status, or_root=False) or (os.name != "nt" and stat.S_IMODE(status.st_mode) & 0o022)
    return None if is_others or not stat.S_ISREG(status.st_mode) else read_text(backup)


def is_unchanged(path: Path, backup: Path) -> bool:
    """Return whether nobody has written the file since it got this backup."""
    try:
        return path.stat().st_mtime_ns == backup.lstat().st_mtime_ns
    except OSError:
        return False


def remove(path: Path, before: str | None) -> None:
    """Remove the file if it still contains `before`."""
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigInvalid(f"cannot remove {path}: {error.strerror}", hint="remove it by hand") from None


def write_file(path: Path, content: str | bytes, mode: int = PRIVATE) -> None:
    """Write atomically: readers see the old or the new file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
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
        after = _insert(text, values[section], members, depth=2)
    else:
        after = _insert(text, root, {section: members}, depth=1)
    return _require_expected(text, after, before | {section: {**before.get(section, {}), **members}}, path)


def with_item(text: str, section: str | None, item: object, path: Path) -> str:
    """Append the item to the list in the section, which is created if missing; None: the file is a list."""
    text = text if text.strip() else "[]\n" if section is None else "{}\n"
    before, step = parse(text, path).value, _step(text)
    line = json.dumps(item, ensure_ascii=False)
    items = _list_of(before, section, path)
    if section is not None and items is None:
        block = f"{step}{json.dumps(section)}: [\n{step * 2}{line}\n{step}]"
        after = _insert_block(text, without_comments(text).index("{"), block, depth=1)
    else:
        depth = 1 if section is None else 2
        after = _insert_block(text, _list_opening(text, section), step * depth + line, depth)
    return _require_expected(text, after, _with_list(before, section, [*(items or ()), item]), path)


def without_item(text: str, section: str | None, index: int, path: Path) -> str:
    """Remove an item of the list in the section, with its comma. Comments stay."""
    before, plain = parse(text, path).value, without_comments(text)
    items, spans = list(_list_of(before, section, path) or ()), _items(plain, _list_opening(text, section))
    del items[index]
    after = _without_span(text, plain, spans, index)
    return _require_expected(text, after, _with_list(before, section, items), path)


def without_member(text: str, section: str, name: str, path: Path) -> str:
    """Remove a member of the object in the section, with its comma. Comments stay."""
    before, plain = parse(text, path).value, without_comments(text)
    if not isinstance(before, dict) or not isinstance(before.get(section), dict) or name not in before[section]:
        return text
    spans = _items(plain, _scan(plain, plain.index("{"))[1][section])
    keys = [json.loads(match[0]) for start, _ in spans if (match := _TOKEN.match(plain, start))]
    after = _without_span(text, plain, spans, keys.index(name))
    left = {key: value for key, value in before[section].items() if key != name}
    return _require_expected(text, after, {**before, section: left}, path)


def _without_span(text: str, plain: str, spans: list[tuple[int, int]], index: int) -> str:
    """Remove an item of a list or an object: with the comma after it, or as the last with the one before."""
    start, end = spans[index]
    if comma := _COMMA.match(plain, end):
        return _cut(text, start, comma.end())
    after = _cut(text, start, end)
    if not index:
        return after
    last = plain.rindex(",", spans[index - 1][1], start)
    return after[:last] + after[last + 1 :]


def _list_of(value: object, section: str | None, path: Path) -> list[object] | None:
    items = value.get(section, None) if section is not None and isinstance(value, dict) else value
    if items is not None and not isinstance(items, list):
        raise ConfigInvalid(f"{section or 'the content'} of {path} is not a list", hint="write [] there")
    return items


def _with_list(value: object, section: str | None, items: list[object]) -> object:
    return {**value, section: items} if section is not None and isinstance(value, dict) else items


def _list_opening(text: str, section: str | None) -> int:
    plain = without_comments(text)
    return plain.index("[") if section is None else _scan(plain, plain.index("{"))[1][section]


def _items(plain: str, opening: int) -> list[tuple[int, int]]:
    """Return where each item of a list begins and ends."""
    depth, start, spans = 1, opening + 1, []
    for token in _TOKEN.finditer(plain, opening + 1):
        depth -= token[0] in "}]"
        if not depth or (depth == 1 and token[0] == ","):
            item = plain[start : token.start()]
            if item.strip():
                spans.append((start + len(item) - len(item.lstrip()), start + len(item.rstrip())))
            start = token.end()
        if not depth:
            break
        depth += token[0] in "{["
    return spans


def _cut(text: str, start: int, end: int) -> str:
    """Remove a part of a text, and its line if nothing else is there, or else the blanks beside it."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1
    if line_end and not (text[line_start:start] + text[end:line_end]).strip():
        start, end = line_start, line_end
    elif text[line_start:start].strip():
        start = len(text[:start].rstrip(" \t"))
        end += len(text[end:]) - len(text[end:].lstrip(" \t")) if text[start - 1] in "{[" else 0
    return text[:start] + text[end:]


def _require_expected(text: str, after: str, expected: object, path: Path) -> str:
    """Parse the edited text again, and raise if it is not as expected."""
    if parse(after, path).value != expected or (is_strict(text) and not is_strict(after)):
        raise ConfigInvalid(f"cannot edit {path} without harm", hint="edit it by hand")
    return after


def _insert(text: str, opening: int, members: Mapping[str, object], depth: int) -> str:
    step = _step(text)
    block = json.dumps(members, indent=step, ensure_ascii=False)[1:-1].strip("\n")
    if depth > 1:
        block = "\n".join(step * (depth - 1) + line for line in block.split("\n"))
    return _insert_block(text, opening, block, depth)


def _step(text: str) -> str:
    return match[1] if (match := _INDENT.search(text)) else "  "


def _insert_block(text: str, opening: int, block: str, depth: int) -> str:
    """Insert an indented block before the end of the object or list that opens there."""
    plain, step = without_comments(text), _step(text)
    closing, _ = _scan(plain, opening)
    last = len(plain[:closing].rstrip()) - 1
    comma = "" if plain[last] in "{[," else ","
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
