"""Values of ingest: options, blocks of a file, stored state of a source, and results."""

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
    """A unit of a source that chunking prefers not to split. `level` is that of a heading, 1 the outermost.

    `start` (inclusive) and `end` (exclusive) are offsets in the source's text; `line` is its first line, if known.
    The span can be longer than `text`, which omits markup.
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
    """The content of a file. `content_hash` is the hash of its bytes."""

    content_hash: str
    title: str
    blocks: Sequence[Block]
    authors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    type: str = ""
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class KnownSource:
    """`content_hash` and `recipe` (the pipeline fingerprint) are of the last finished ingest, empty before it."""

    source: Source
    content_hash: str = ""
    recipe: str = ""


@dataclass(frozen=True)
class ChunkMark:
    """`indexed` is a hash of the chunk's state in the index, `extracted` the fingerprint of its extractor."""

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
    """The outcome for one file. `chunks` and `extractions` count the written ones."""

    path: str
    outcome: IngestOutcome
    chunks: int = 0
    extractions: int = 0
    problem: str = ""


@dataclass(frozen=True)
class LibraryPlace:
    """A file or folder under its name in the library, and the number of its sources."""

    name: str
    sources: int


@dataclass(frozen=True)
class IngestOptions:
    """`paths` are files and folders. A source is named by its full path, or by its path relative to `base`.

    `type`, `topics` and `authors` apply to all of them. `extract` None: extract if a language model is configured,
    with at most `token_budget` tokens. `prune` removes sources whose files are gone; `dry` writes nothing.
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
