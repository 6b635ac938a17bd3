"""Reading a kept result: a page of it, its lines that match a pattern, or the values at a path of its JSON."""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from toolscript.core.errors import InvalidRequest
from toolscript.core.mcp.answers import compact_json
from toolscript.core.patterns import matcher
from toolscript.core.text import visible
from toolscript.gateway.store.results import Format, KeptPart

# How much is read at once.
PAGE_BYTES, MAX_PAGE_BYTES = 12_000, 40_000
# Of a longer line each piece is searched for itself, with a bit of the one before.
PIECE_BYTES, OVERLAP_BYTES = 400, 100
MAX_OUTLINE, MAX_OUTLINE_KEYS, MAX_OUTLINE_DEPTH, MAX_KEY = 1_500, 24, 5, 60
MAX_STEPS = 50
# How much JSON is parsed at once.
MAX_JSON_BYTES = 8 * 1024 * 1024

_STEP = re.compile(
    r"""\.?([^.\[\]"'\s]+)|\[\s*(?:(-?\d{1,15})|(\*)|(-?\d{0,15}):(-?\d{0,15})|"([^"]*)"|'([^']*)')\s*\]"""
)
_PATH_RULE = "is keys and indexes, such as items[0].name, items[*].id, items[2:5] or ['a key']"
# Parsing takes several times the memory of the text: one at a time.
_PARSING = threading.Lock()

Step = str | int | slice
NextCall = Callable[[int], str]


def page(part: KeptPart, offset: int, limit: int, next_call: NextCall) -> str:
    """Return the bytes from an offset on, as text cut between characters, or in base64."""
    is_text = part.format is not Format.BYTES
    with part.path.open("rb") as file:
        file.seek(offset)
        data = file.read(limit if is_text else max(3, limit * 3 // 4 // 3 * 3))
        end = offset + len(data)
        if is_text:
            rest = _rest_of_character(file) if data else b""
            shown, end = _decoded(data + rest), end + len(rest)
        else:
            shown = base64.b64encode(data).decode()
    return shown_part(shown, offset, end, part.size, next_call)


def shown_part(shown: str, offset: int, end: int, size: int, next_call: NextCall) -> str:
    if offset >= size:
        return f"[the result ends at byte {size:,}]"
    if end >= size:
        return f"{shown}\n[bytes {offset + 1:,} to {size:,}: this is the end]"
    return f"{shown}\n[bytes {offset + 1:,} to {end:,} of {size:,}; read on with {next_call(end)}]"


def _rest_of_character(file: BinaryIO) -> bytes:
    rest = b""
    while (byte := file.read(1)) and byte[0] & 0xC0 == 0x80:
        rest += byte
    return rest


def _decoded(data: bytes) -> str:
    """Return the text without the end of a character that began before it."""
    begin = next((place for place, byte in enumerate(data) if byte & 0xC0 != 0x80), len(data))
    return visible(data[begin:].decode("utf-8", "replace"))


def grep(part: KeptPart, pattern: str, offset: int, limit: int, next_call: NextCall) -> str:
    """Return the lines that match, each after its offset. What is no regular expression is a plain text."""
    matches = matcher(pattern) or (lambda line: pattern in line)
    lines, used, end = list[str](), 0, part.size
    with part.path.open("rb") as file:
        for start, piece in _pieces(file, offset):
            if used > limit:
                end = start
                break
            text = piece.decode("utf-8", "replace").rstrip("\r\n")
            if matches(text):
                lines.append(f"{start}: {visible(text)}")
                used += len(piece) + 12
    counted = f"{len(lines)} matching line{'' if len(lines) == 1 else 's'}, each after its offset"
    if end < part.size:
        return "\n".join([*lines, f"[{counted}; search on with {next_call(end)}]"])
    return "\n".join([*lines, f"[{counted}; that is all]"])


def _pieces(file: BinaryIO, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield lines and their offsets; of a long line pieces, which overlap."""
    file.seek(offset)
    while piece := file.readline(PIECE_BYTES):
        yield offset, piece
        offset += len(piece)
        if not piece.endswith(b"\n") and len(piece) == PIECE_BYTES:
            offset -= OVERLAP_BYTES
            file.seek(offset)


def at_path(part: KeptPart, path: str, offset: int, limit: int, next_call: NextCall) -> str:
    """Return the value at a path as JSON, from an offset in it; of a large one its shape first."""
    steps = parse_path(path)
    with _PARSING:
        value = _walk(parse_json(part), steps, "")
        encoded = compact_json(value).encode("utf-8", "surrogatepass")
        shape = f"{outline(value)}\n" if len(encoded) > limit and not offset else ""
    end = offset + len(encoded[offset : offset + limit])
    while end < len(encoded) and encoded[end] & 0xC0 == 0x80:
        end += 1
    return shown_part(f"{shape}{_decoded(encoded[offset:end])}", offset, end, len(encoded), next_call)


def parse_json(part: KeptPart) -> object:
    if part.format is not Format.JSON or part.size > MAX_JSON_BYTES:
        raise InvalidRequest("this result is not JSON: it has no paths", hint="read it by offset or grep")
    with part.path.open("rb") as file:
        return json.loads(file.read().decode("utf-8", "surrogatepass"))


def parse_path(path: str) -> list[Step]:
    """Return the steps of a path such as `$.items[0].name`."""
    rest, steps = path.strip().removeprefix("$"), list[Step]()
    while rest:
        match = _STEP.match(rest)
        if match is None or len(steps) == MAX_STEPS:
            raise InvalidRequest(f"path {_PATH_RULE}", details={"field": "path"})
        steps.append(_step(match))
        rest = rest[match.end() :]
    return steps


def _step(match: re.Match[str]) -> Step:
    key, index, every, start, stop, quoted, single_quoted = match.groups()
    if every is not None:
        return slice(None)
    if start is not None:
        return slice(int(start) if start else None, int(stop) if stop else None)
    return (
        int(index)
        if index is not None
        else next(name for name in (key, quoted, single_quoted) if name is not None)
    )


def _walk(value: object, steps: list[Step], walked: str) -> object:
    for number, step in enumerate(steps):
        if isinstance(step, slice):
            values = [*value.values()] if isinstance(value, Mapping) else value
            if not isinstance(values, list):
                raise _no_such(value, walked)
            place = f"{walked}[*]"
            return [_walk(inner, steps[number + 1 :], place) for inner in values[step]]
        if isinstance(value, Mapping) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            raise _no_such(value, f"{walked}[{compact_json(step)}]")
        walked = f"{walked}[{compact_json(step)}]"
    return value


def _no_such(value: object, place: str) -> InvalidRequest:
    return InvalidRequest(
        f"there is nothing at {visible(place)[:200]}",
        hint=f"what is there: {outline(value)[:500]}",
        details={"field": "path"},
    )


def outline(value: object) -> str:
    """Return the shape of a JSON value: its keys, the types of their values, and the lengths of lists."""
    shape = visible(_shape(value, MAX_OUTLINE_DEPTH))
    return shape if len(shape) <= MAX_OUTLINE else f"{shape[:MAX_OUTLINE]}…"


def _shape(value: object, depth: int) -> str:
    if isinstance(value, Mapping):
        names = [*value][:MAX_OUTLINE_KEYS] if depth else []
        inner = [f"{compact_json(str(name)[:MAX_KEY])}: {_shape(value[name], depth - 1)}" for name in names]
        more = [f"… {len(value) - len(names)} more keys"] if len(value) > len(names) else []
        return f"{{{', '.join([*inner, *more])}}}"
    if isinstance(value, list):
        return f"[{len(value):,} × {_shape(value[0], depth - 1)}]" if value and depth else f"[{len(value):,}]"
    if isinstance(value, str):
        return f"string ({len(value):,})" if len(value) > MAX_KEY else "string"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return "number"
