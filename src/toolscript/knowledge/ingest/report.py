"""The report of an ingest, its progress, and the pipeline fingerprint that decides what is ingested again."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from toolscript.core.llm.model import TextUsage
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.knowledge.ingest.chunking import CHUNKS_VERSION
from toolscript.knowledge.model.ingest import IngestOutcome, IngestResult, KnownSource
from toolscript.knowledge.model.library import SourceStatus

MAX_NAMED = 100

OnResult = Callable[[IngestResult], None]


@dataclass
class IngestReport:
    """`skipped` lists the first skipped files, with the reasons.

    `unextracted` counts chunks without a usable reply of the language model, `problem` is why the run stopped
    calling it. `kept` are empty folders, with the number of sources that the library still has of each.
    """

    outcomes: Counter[IngestOutcome] = field(default_factory=Counter)
    chunks: int = 0
    extractions: int = 0
    skipped: list[IngestResult] = field(default_factory=list)
    unextracted: int = 0
    problem: str = ""
    text_usage: TextUsage | None = None
    was_stopped: bool = False
    kept: dict[str, int] = field(default_factory=dict)

    def add(self, result: IngestResult) -> None:
        self.outcomes[result.outcome] += 1
        self.chunks += result.chunks
        self.extractions += result.extractions
        if result.outcome is IngestOutcome.SKIPPED and len(self.skipped) < MAX_NAMED:
            self.skipped.append(result)

    @property
    def done(self) -> int:
        return self.outcomes.total()

    def as_json(self) -> dict[str, object]:
        usage = self.text_usage
        return {
            **{outcome.value: self.outcomes[outcome] for outcome in IngestOutcome},
            "stopped": self.was_stopped,
            "kept": dict(self.kept),
            "chunks": self.chunks,
            "extractions": self.extractions,
            "unextracted": self.unextracted,
            "extraction_problem": self.problem,
            "calls": usage.calls if usage else 0,
            "failed_calls": usage.failed if usage else 0,
            "prompt_tokens": usage.prompt_tokens if usage else 0,
            "completion_tokens": usage.completion_tokens if usage else 0,
        }


@dataclass(frozen=True)
class Described:
    """Metadata from the options of an ingest, which overrides that of the files. Empty: that of the files."""

    type: str = ""
    topics: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps([CHUNKS_VERSION, self.type, self.topics, self.authors])
        return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()


NO_OVERRIDES = Described()


@dataclass(frozen=True)
class PipelineFingerprint:
    """`index` is the fingerprint of the indexes, `made` that of chunking and metadata.

    `extraction` is that of the extractor; empty without one, or when some chunk got no usable reply.
    """

    index: str
    made: str
    extraction: str = ""

    def __str__(self) -> str:
        return f"{self.index}.{self.made}.{self.extraction}"

    def is_done(self, known: KnownSource | None, content_hash: str) -> bool:
        if known is None or known.source.status is not SourceStatus.READY or known.content_hash != content_hash:
            return False
        done = parse_pipeline_fingerprint(known.recipe)
        return done == self if self.extraction else replace(done, extraction="") == self


def parse_pipeline_fingerprint(text: str) -> PipelineFingerprint:
    parts = text.split(".")
    return PipelineFingerprint(*parts) if len(parts) == 3 else PipelineFingerprint("", "")


def discard_result(_: IngestResult) -> None:
    """Ignore a result."""


@dataclass
class IngestProgress:
    """Reports results and progress to callbacks, and adds them up."""

    on_result: OnResult = discard_result
    on_progress: OnProgress = silent
    report: IngestReport = field(default_factory=IngestReport)
    total: int | None = None
    chunks: int = 0

    def expect(self, count: int) -> None:
        """Add to the total."""
        if self.total is not None:
            self.total += count

    def tell(self, result: IngestResult) -> None:
        self.report.add(result)
        self.on_result(result)
        self.on_progress(Progress("files", self.report.done, self.total))

    def count_chunks(self, count: int) -> None:
        self.chunks += count
        # A terminal without a live display shows the first of two reports at once: the one with a total.
        self.on_progress(Progress("files", self.report.done, self.total))
        self.on_progress(Progress("chunks", self.chunks))
