"""Answers that pass through `/mcp/{server}`: their media type, and their events as the specification has them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

EVENTS, JSON = "text/event-stream", "application/json"
_BOM = b"\xef\xbb\xbf"
# Lines end in three ways, which may be mixed. A `\r` at the end of a chunk may be half of `\r\n`.
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
# Of an end of an event, the bytes that can be in an earlier chunk.
_BEGUN = 3


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Event:
    """`raw` has its end, which `size` does not count, and is empty for an event that is too large."""

    raw: bytes
    size: int

    @property
    def data(self) -> bytes:
        return b"\n".join(line[5:].removeprefix(b" ") for line in self.raw.splitlines() if _is_data(line))

    def with_data(self, data: bytes) -> bytes:
        others = [line for line in self.raw.splitlines() if line and not _is_data(line)]
        return b"\n".join([*others, b"data: " + data]) + b"\n\n"


class EventReader:
    """Splits a stream into its events, and looks at each byte once, however many chunks an event has."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._dropped = 0
        self._is_begun = False

    def read(self, chunk: bytes) -> Iterator[Event]:
        """Return the events that this chunk completes."""
        begin, looked_at = 0, max(0, len(self._rest) - _BEGUN)
        self._rest += chunk
        if not self._is_begun and len(self._rest) >= len(_BOM):
            self._is_begun = True
            if self._rest.startswith(_BOM):
                del self._rest[: len(_BOM)]
                looked_at = 0
        for end in _EVENT_END.finditer(self._rest, looked_at):
            # The rest of an end that a chunk cut in two is no part of the next event.
            begin_of_text = begin + self._rest.startswith(b"\n", begin)
            size = self._dropped + max(0, end.start() - begin_of_text)
            yield Event(b"" if size > self._max_bytes else bytes(self._rest[begin : end.end()]), size)
            begin, self._dropped = end.end(), 0
        del self._rest[:begin]
        if len(self._rest) > self._max_bytes:
            self._dropped += len(self._rest) - _BEGUN
            del self._rest[:-_BEGUN]

    def left(self) -> Event:
        """Return what has no end."""
        return Event(b"" if self._dropped else bytes(self._rest), self._dropped + len(self._rest))


def _is_data(line: bytes) -> bool:
    return line == b"data" or line.startswith(b"data:")
