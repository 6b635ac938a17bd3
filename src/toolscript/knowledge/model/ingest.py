"""Values of ingest: what to read, how a file was read, what is stored of it, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from toolscript.core.items import JsonObject
from toolscript.knowledge.model.library import Source


class BlockKind(StrEnum):
    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True)
class Block:
    """A piece of a source that is best not cut. `level` is that of a heading, 1 the outermost.

    `start` to before `end` is where it stands in the source's text, `line` its first line, where that is known.
    What stands there can be longer: marks are left out.
    """

    kind: BlockKind
    text: str
    level: int = 0
    page: int | None = None
    line: int | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Reading:
    """A file as it was read. `content_hash` is that of its bytes."""

    content_hash: str
    title: str
    blocks: Sequence[Block]
    authors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    type: str = ""
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class KnownSource:
    """`content_hash` and `recipe` are those of what was last finished; empty where nothing ever was."""

    source: Source
    content_hash: str = ""
    recipe: str = ""


@dataclass(frozen=True)
class ChunkMark:
    """`indexed` tells what of the chunk is in the index, `extracted` by which recipe it was looked at."""

    indexed: str = ""
    extracted: str = ""


class IngestOutcome(StrEnum):
    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class IngestResult:
    """What became of one file. `chunks` and `extractions` are how many were written."""

    path: str
    outcome: IngestOutcome
    chunks: int = 0
    extractions: int = 0
    problem: str = ""


@dataclass(frozen=True)
class LibraryPlace:
    """A file or a folder as the library knows it, and how many sources it has there."""

    name: str
    sources: int


@dataclass(frozen=True)
class IngestOptions:
    """`paths` are files and folders. Sources are known by their full path, or from `base` on where that is given.

    `type`, `topics` and `authors` are said of all of them. `extract` None: if a language model is set up; no more
    than `token_budget` tokens go into that. `prune` removes what folders no longer have; `dry` writes nothing.
    """

    paths: tuple[str, ...]
    base: str = ""
    type: str = ""
    topics: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    extract: bool | None = None
    token_budget: int | None = None
    prune: bool = False
    dry: bool = False
