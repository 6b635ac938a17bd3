"""Whether a file has to be looked at again: what it was made with, beside what is in it."""

import hashlib
import json
from dataclasses import dataclass, replace

from toolscript.model.ingest import KnownSource
from toolscript.model.library import SourceStatus
from toolscript.sync.chunking import CHUNKS_VERSION


@dataclass(frozen=True)
class Described:
    """What whoever ingests says of the files, beside what they say themselves. Empty: what they say."""

    type: str = ""
    topics: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps([CHUNKS_VERSION, self.type, self.topics, self.authors])
        return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()


AS_THEY_SAY = Described()


@dataclass(frozen=True)
class Recipe:
    """`index` is the fingerprint of the indexes, `made` how it was cut and described.

    `extraction` is that of the extractions; empty where nobody extracts, or some chunk could not be looked at.
    """

    index: str
    made: str
    extraction: str = ""

    def __str__(self) -> str:
        return f"{self.index}.{self.made}.{self.extraction}"

    def is_done(self, known: KnownSource | None, content_hash: str) -> bool:
        if known is None or known.source.status is not SourceStatus.READY or known.content_hash != content_hash:
            return False
        done = recipe_read(known.recipe)
        return done == self if self.extraction else replace(done, extraction="") == self


def recipe_read(text: str) -> Recipe:
    parts = text.split(".")
    return Recipe(*parts) if len(parts) == 3 else Recipe("", "")
