"""What is remembered of a chunk's points: enough to know whether they have to be written again."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolscript.model.index import Fields


@dataclass(frozen=True)
class PointMark:
    """`chunk` and `extractions` stand for what is in the indexes of it; empty: nothing, or nobody knows.

    `version` is that of the points. What comes later has a later one, even where clocks differ.
    """

    version: int = 0
    chunk: str = ""
    extractions: str = ""

    def __str__(self) -> str:
        return f"{self.version}.{self.chunk}.{self.extractions}"


def mark_read(text: str) -> PointMark:
    """Whatever is no mark says that nobody knows."""
    version, *hashes = text.split(".")
    if not version.isdecimal() or len(hashes) != 2:
        return PointMark()
    return PointMark(int(version), *hashes)


def content_mark(fingerprint: str, entries: Iterable[tuple[str, Sequence[str], Fields]]) -> str:
    """Of ids, texts and fields as they are in the index of that fingerprint; of nothing, nothing."""
    told = [[id_, texts, {name: fields[name] for name in sorted(fields)}] for id_, texts, fields in entries]
    if not told:
        return ""
    canonical = json.dumps([fingerprint, told], ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
