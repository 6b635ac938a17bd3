"""What can be extracted from a chunk. A closed list: whoever filters by a type knows what there is."""

from enum import StrEnum


class ExtractionType(StrEnum):
    DECISION = "decision"
    PATTERN = "pattern"
    WARNING = "warning"
    METHOD = "method"
    CHECKLIST = "checklist"
    DEFINITION = "definition"
    FACT = "fact"
    EXAMPLE = "example"


MEANINGS = {
    ExtractionType.DECISION: "what was or should be chosen, and why",
    ExtractionType.PATTERN: "a solution that fits a kind of problem that comes again",
    ExtractionType.WARNING: "what goes wrong, or must not be done",
    ExtractionType.METHOD: "how something is done, step by step",
    ExtractionType.CHECKLIST: "what has to be there or be looked at, point by point",
    ExtractionType.DEFINITION: "what a term means",
    ExtractionType.FACT: "a figure, a limit or a relation that can be looked up",
    ExtractionType.EXAMPLE: "a case that shows how something works",
}
