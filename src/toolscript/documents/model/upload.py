"""Progress and report of a bulk upload of documents."""

from collections import Counter
from dataclasses import dataclass, field

from toolscript.documents.model.document import PutOutcome

MAX_NAMED = 100


@dataclass(frozen=True)
class Place:
    """A position in the input: number of the path, file, byte offset and line.

    `steps` are the names from the path down to the file; files are read in the order of their steps.
    """

    path: int = 0
    steps: tuple[str, ...] = ()
    offset: int = 0
    line: int = 0


@dataclass
class UploadReport:
    """`skipped` counts files without a document. `named` lists the first that were refused or skipped, and why."""

    outcomes: Counter[PutOutcome] = field(default_factory=Counter)
    skipped: int = 0
    named: list[tuple[str, str]] = field(default_factory=list)
    sent_before: int = 0

    @property
    def refused(self) -> int:
        return self.outcomes[PutOutcome.REFUSED]

    @property
    def done(self) -> int:
        return self.outcomes.total() + self.skipped

    def took(self, outcome: PutOutcome, document_id: str, problem: str) -> None:
        self.outcomes[outcome] += 1
        if outcome is PutOutcome.REFUSED:
            self._name(document_id, problem)

    def refuse(self, where: str, reason: str) -> None:
        self.outcomes[PutOutcome.REFUSED] += 1
        self._name(where, reason)

    def skip(self, where: str, reason: str) -> None:
        self.skipped += 1
        self._name(where, reason)

    def as_json(self) -> dict[str, object]:
        return {
            **{outcome.value: self.outcomes[outcome] for outcome in PutOutcome},
            "skipped": self.skipped,
            "sent_before": self.sent_before,
            "reasons": [{"where": where, "reason": reason} for where, reason in self.named],
        }

    def _name(self, where: str, reason: str) -> None:
        if len(self.named) < MAX_NAMED:
            self.named.append((where, reason))
