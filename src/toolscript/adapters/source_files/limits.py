"""How much one file may be, and cost."""

from dataclasses import asdict, dataclass, fields

MEGABYTE = 1024 * 1024
# Longer than any path a system knows.
MOST_NAME = 8_192


@dataclass(frozen=True)
class ReadingLimits:
    """`cpu_seconds` and `memory` hold for the process that reads, `seconds` for whoever waits for it.

    A reading is handed over as JSON of at most `answer` bytes.
    """

    pdf_bytes: int = 100 * MEGABYTE
    other_bytes: int = 50 * MEGABYTE
    letters: int = 20_000_000
    blocks: int = 200_000
    depth: int = 400
    pages: int = 10_000
    cpu_seconds: int = 60
    seconds: float = 120.0
    memory: int = 1_536 * MEGABYTE
    answer: int = 160 * MEGABYTE

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def limits_from_json(given: dict[str, object]) -> ReadingLimits:
    named = {one.name for one in fields(ReadingLimits)}
    return ReadingLimits(**{name: value for name, value in given.items() if name in named})  # type: ignore[arg-type]
