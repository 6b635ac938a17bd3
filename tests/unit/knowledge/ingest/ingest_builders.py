"""Ingest on doubles: files in memory, a scripted language model, and a process that is killed at any call."""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolscript.core.errors import FileSkipped, ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.llm.model import TextUsage
from toolscript.core.retrieval.model import IndexCard, Matrix, Vector
from toolscript.knowledge.ingest.extraction import Extractor
from toolscript.knowledge.ingest.file import FileIngest, FileInspection, FoundFile
from toolscript.knowledge.ingest.indexes import LibraryIndexes, parse_mark, prepare_indexes, require_live
from toolscript.knowledge.ingest.reindex import LibraryReindex, Reindexed
from toolscript.knowledge.ingest.report import NO_OVERRIDES, Described, IngestProgress, IngestReport
from toolscript.knowledge.ingest.run import IngestRun
from toolscript.knowledge.ingest.sources import LibraryWriteContext, RemovedSources, removing, report_removal
from toolscript.knowledge.model.ingest import Block, BlockKind, KnownSource, Reading
from toolscript.testing import HashEmbedder, MemoryIndexes, MemoryLibrary

LEASE = 60.0
_DIRECTIONS: dict[str, dict[int, Vector]] = {}
FOLDER = "/shelf"


def text_of(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"# {title}", *paragraphs])


@dataclass
class FilesInMemory:
    """Texts by path. None: cannot be read."""

    texts: dict[str, str | None] = field(default_factory=dict)
    read_paths: list[str] = field(default_factory=list)

    async def content_hash(self, path: str) -> str:
        return hashlib.sha256(self._text(path).encode()).hexdigest()

    async def read(self, path: str) -> Reading:
        self.read_paths.append(path)
        title, *paragraphs = self._text(path).split("\n\n")
        # Each paragraph is a section, so that chunking joins none.
        blocks = [
            block
            for number, text in enumerate(paragraphs)
            for block in (
                Block(BlockKind.HEADING, " ".join(text.split()[:2]), level=2, start=number),
                Block(BlockKind.TEXT, text, start=number),
            )
        ]
        return Reading(await self.content_hash(path), title.lstrip("# "), blocks, topics=("Shelf",))

    def _text(self, path: str) -> str:
        text = self.texts.get(path)
        if text is None:
            raise FileSkipped("it cannot be read", hint="look at it")
        return text


class CountingEmbedder(HashEmbedder):
    """Counts how often it embedded each text."""

    def __init__(self, name: str = "hash") -> None:
        super().__init__(name, dimensions=8)
        # Shared, because hundreds of embedders embed the same few words.
        self._directions = _DIRECTIONS.setdefault(name, self._directions)
        self.texts: Counter[str] = Counter()

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        self.texts.update(texts)
        return await super().embed_texts(texts)


Answer = Callable[[Mapping[str, Any]], object]


def one_warning(passage: Mapping[str, Any]) -> object:
    """Return one warning per chunk, in its words."""
    text = f"Mind that {passage['text'][:200]}"
    warning = {"type": "warning", "title": passage["text"][:20], "text": text, "topics": ["Care", "care"]}
    return {"passage": passage["passage"], "extractions": [warning]}


class ScriptedText:
    """Replies to each chunk by the script; counts the requested chunks."""

    def __init__(self, answer: Answer = one_warning, name: str = "scripted") -> None:
        self.answer = answer
        self.name = name
        self.asked: Counter[str] = Counter()
        self.failure: ToolscriptError | None = None
        self.usage = TextUsage()
        self.data: list[str] = []

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        passages = [json.loads(line) for line in data.splitlines()]
        self.asked.update(passage["text"] for passage in passages)
        self.data.append(data)
        self.usage += TextUsage(1, int(self.failure is not None), 100, 20)
        if self.failure is not None:
            raise self.failure
        return {"passages": [self.answer(passage) for passage in passages]}


class Killed(BaseException):
    """Simulates a killed process: nothing catches it, and later calls have no effect."""


@dataclass
class Death:
    """Kills the process at the n-th call of any port: before its effect, or after."""

    at_call: int = 10**9
    after: bool = False
    calls: int = 0

    def around(self, port: Any) -> Any:
        return _Mortal(port, self)

    async def meet(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls += 1
        if self.calls > self.at_call or (self.calls == self.at_call and not self.after):
            raise Killed
        answer = await call()
        if self.calls == self.at_call:
            raise Killed
        return answer


class _Mortal:
    def __init__(self, port: Any, death: Death) -> None:
        self._port = port
        self._death = death

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if name in {"card", "model", "usage"} or not callable(attribute):
            return attribute
        return lambda *arguments, **options: self._death.meet(lambda: attribute(*arguments, **options))


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Place:
    """A library, its indexes and a clock."""

    embedder: CountingEmbedder = field(default_factory=CountingEmbedder)
    text: ScriptedText | None = None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.library = MemoryLibrary(self.clock)
        self.indexes = LibraryIndexes(MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False))

    @property
    def card(self) -> IndexCard:
        return IndexCard(self.embedder.model)

    async def write_context(self, death: Death) -> LibraryWriteContext:
        reader = death.around(self.library)
        indexes = LibraryIndexes(death.around(self.indexes.chunks), death.around(self.indexes.extractions))
        await prepare_indexes(indexes, self.card, reader)
        chunks, extractions = await indexes.open(self.card)
        return LibraryWriteContext(
            reader,
            reader,
            death.around(self.embedder),
            death.around(chunks),
            death.around(extractions),
            lambda: require_live(indexes, self.card),
        )

    async def run(
        self,
        files: FilesInMemory,
        *,
        only: Iterable[str] | None = None,
        death: Death | None = None,
        prune: bool = True,
        described: Described = NO_OVERRIDES,
        at_once: int = 2,
        batch: int = 2,
        dry: bool = False,
        lease: float = LEASE,
        token_budget: int | None = None,
    ) -> IngestReport:
        death = death or Death()
        write_context = await self.write_context(death)
        progress = IngestProgress()
        extractor = self._extractor(death, token_budget)
        extraction = extractor.recipe if extractor else ""
        inspection = FileInspection(files, write_context.fingerprint, described, extraction=extraction)
        ingest = FileIngest(
            write_context,
            inspection,
            extractor=extractor,
            lease_seconds=lease,
            batch=batch,
            on_chunks=progress.count_chunks,
        )
        run = IngestRun(
            inspection if dry else ingest, write_context.writer, progress, lease_seconds=lease, at_once=at_once
        )
        names = sorted(files.texts) if only is None else only
        await run.run([FoundFile(name, name) for name in names])
        if prune:
            remove = (
                report_removal if dry else removing(write_context, lease, lambda path: path not in files.texts)
            )
            gone = RemovedSources(write_context.writer, lambda path: path not in files.texts, progress, remove)
            await gone.prune([FOLDER])
        if extractor:
            progress.report.unextracted, progress.report.problem = extractor.left, extractor.problem
        return progress.report

    async def reindex(self, embedder: CountingEmbedder, death: Death | None = None) -> Reindexed:
        death = death or Death()
        self.embedder = embedder
        indexes = LibraryIndexes(death.around(self.indexes.chunks), death.around(self.indexes.extractions))
        await indexes.create(self.card)
        chunks, extractions = await indexes.open(self.card)
        reader = death.around(self.library)
        write_context = LibraryWriteContext(
            reader,
            reader,
            death.around(embedder),
            death.around(chunks),
            death.around(extractions),
            lambda: require_live(indexes, self.card),
        )
        return await LibraryReindex(write_context, indexes, lease_seconds=LEASE).run()

    async def state(self) -> dict[str, object]:
        """Return the whole state without times."""
        library = self.library
        return {
            "sources": {id_: _timeless(source) for id_, source in library._sources.items()},
            "claims": {id_: claim for id_, claim in library._claims.items() if claim.until > self.clock()},
            "chunks": dict(library._chunks),
            "marks": {
                id_: (parse_mark(mark.indexed).chunk, parse_mark(mark.indexed).extractions, mark.extracted)
                for id_, mark in library._marks.items()
            },
            "extractions": {
                id_: replace(extraction, extracted_at="") for id_, extraction in library._extractions.items()
            },
            "chunk points": await self._points(self.indexes.chunks),
            "extraction points": await self._points(self.indexes.extractions),
        }

    def later(self) -> None:
        self.clock.now += 2 * LEASE

    def marked_texts(self) -> set[str]:
        """Texts of chunks that are marked as indexed."""
        marks = self.library._marks
        return {
            chunk.content for chunk in self.library._chunks.values() if parse_mark(marks[chunk.id].indexed).chunk
        }

    def _extractor(self, death: Death, token_budget: int | None) -> Extractor | None:
        if self.text is None:
            return None
        return Extractor(death.around(self.text), self.text.name, token_budget=token_budget)

    async def _points(self, indexes: Any) -> dict[int, object]:
        index = cast("Any", await indexes.open(self.card))
        return {
            id_: (point.vector.tobytes(), dict(point.terms), dict(point.fields))
            for id_, point in index._points.items()
        }


def _timeless(stored: KnownSource) -> KnownSource:
    return replace(stored, source=replace(stored.source, ingested_at=""))
