"""What became of the files of a run."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from toolscript.model.ingest import IngestOutcome, IngestResult
from toolscript.model.text_usage import TextUsage

MOST_NAMED = 100

OnResult = Callable[[IngestResult], None]


@dataclass
class IngestReport:
    """Of the files that were skipped the first are named, and why.

    `unextracted` are chunks that a language model gave no usable answer for, `problem` why it is asked no more.
    `kept` are folders that are empty, with how many sources the library still has of each.
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
        if result.outcome is IngestOutcome.SKIPPED and len(self.skipped) < MOST_NAMED:
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
