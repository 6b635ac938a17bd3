"""Pictures, sounds and other files in the result of a call, saved to files instead of printed as base64."""

import base64
import binascii
import mimetypes
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from toolscript.cli.output import printable
from toolscript.core.errors import SetupError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult

MAX_FILE_BYTES, MAX_FILES = 100_000_000, 100
_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]+")


def with_saved_files(result: CallResult, tool: str, folder: Path | None) -> CallResult:
    """Return the result with a line and the path in place of each file; without a folder, a new one is made."""
    if not any(_encoded(block) for block in result.content):
        return result
    try:
        target = folder or Path(tempfile.mkdtemp(prefix="toolscript-"))
        target.mkdir(parents=True, exist_ok=True)
        paths = _free_paths(target, _UNUSUAL.sub("-", tool)[:60])
        content = [_saved(block, paths) if _encoded(block) else block for block in result.content]
    except OSError as error:
        place = error.filename or folder
        raise SetupError(f"{place} cannot be written: {error.strerror}", hint="give another --save-to") from error
    return replace(result, content=content)


def _encoded(block: JsonObject) -> str:
    """Return the base64 of a block; empty for one without."""
    about = block.get("resource", block)
    data = about.get("blob", about.get("data")) if isinstance(about, Mapping) else None
    return data if isinstance(data, str) else ""


def _saved(block: JsonObject, paths: Iterator[Path]) -> JsonObject:
    about = block.get("resource", block)
    kind = str(about.get("mimeType", "")) if isinstance(about, Mapping) else ""
    encoded = _encoded(block)
    size = len(encoded) * 3 // 4
    if size > MAX_FILE_BYTES:
        return _line(f"[{block['type']} {kind} of {size:,} bytes is too large to save]")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return _line(f"[{block['type']} {kind} is not base64]")
    path = next(paths, None)
    if path is None:
        return _line(f"[{block['type']} {kind} of {size:,} bytes: no more than {MAX_FILES} files are saved]")
    return _line(str(_write_new(path.with_suffix(_ending(kind)), data, paths)))


def _line(text: str) -> JsonObject:
    return {"type": "text", "text": printable(text)}


def _ending(kind: str) -> str:
    return mimetypes.guess_extension(kind.partition(";")[0].strip()) or ".bin"


def _free_paths(folder: Path, stem: str) -> Iterator[Path]:
    taken = {path.stem for path in folder.iterdir()}
    numbers = (number for number in range(1, MAX_FILES + len(taken) + 1) if f"{stem}-{number}" not in taken)
    for _, number in zip(range(MAX_FILES), numbers, strict=False):
        yield folder / f"{stem}-{number}"


def _write_new(path: Path, data: bytes, more: Iterator[Path]) -> Path:
    """Write a file that was not there before: at this path, or at the next one that is free."""
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            path = next(more).with_suffix(path.suffix)
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path.resolve()
