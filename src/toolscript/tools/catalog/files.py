"""Items from a file of JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.item_json import catalog_item_from_json
from toolscript.core.items import Item, RefusedItem

MAX_LINE = 1024 * 1024


def count_lines(path: Path) -> int | None:
    """Count the lines; None for a file that can be read only once, such as a pipe."""
    if path.exists() and not path.is_file():
        return None
    count, last = 0, b"\n"
    with _open(path) as file:
        while block := file.read(1 << 20):
            count, last = count + block.count(b"\n"), block
    return count + (not last.endswith(b"\n"))


def read_items(path: Path) -> Iterator[Item | RefusedItem]:
    """Yield an item for each line, or the reason why it is none. A bad line never hides the good ones after it."""
    with _open(path) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                _skip_rest(file, line)
                yield RefusedItem(f"line {number}", f"longer than {MAX_LINE >> 20} MiB")
            elif line.strip():
                yield _parse(number, line)


def _parse(number: int, line: bytes) -> Item | RefusedItem:
    try:
        return catalog_item_from_json(json.loads(line))
    except InvalidRequest as error:
        return RefusedItem(f"line {number}", error.message)
    except (ValueError, RecursionError) as error:
        return RefusedItem(f"line {number}", f"not JSON: {str(error)[:80]}")


def _skip_rest(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}", hint="give the path of a JSON lines file"
        ) from None
