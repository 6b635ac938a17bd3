"""What `toolscript ingest` says of files, and at its end."""

from shlex import quote
from typing import TYPE_CHECKING

from toolscript.cli.output import json_text, say
from toolscript.cli.tables import printable
from toolscript.model.ingest import IngestOutcome, IngestResult

if TYPE_CHECKING:
    from toolscript.sync.ingest_report import IngestReport

MOST_SAID = 20


def told(result: IngestResult) -> str:
    what = f"{printable(result.path)}: {result.outcome}"
    if result.problem:
        return f"{what}: {printable(result.problem)}"
    return f"{what}, {_many(result.chunks, 'chunk')}" if result.chunks else what


def json_line(result: IngestResult) -> str:
    given = {"path": result.path, "outcome": result.outcome.value}
    if result.problem:
        return json_text({**given, "problem": result.problem})
    return json_text({**given, "chunks": result.chunks, "extractions": result.extractions})


def say_skipped(report: "IngestReport") -> None:
    for one in report.skipped[:MOST_SAID]:
        say(f"skipped {printable(one.path)}: {printable(one.problem)}")
    unsaid = report.outcomes[IngestOutcome.SKIPPED] - len(report.skipped[:MOST_SAID])
    if unsaid:
        say(f"and {unsaid:,} more; --json names them all")


def say_kept(report: "IngestReport") -> None:
    for folder, count in report.kept.items():
        say(f"{printable(folder)} is empty, maybe because its disk is away: nothing of it was removed")
        remove = f"toolscript library remove {printable(quote(folder))}"
        say(f"hint: `{remove}` removes the {_many(count, 'file')} that the library has of it")


def closing_text(report: "IngestReport", *, dry: bool = False) -> str:
    counts = ", ".join(f"{report.outcomes[outcome]:,} {outcome}" for outcome in IngestOutcome)
    if dry:
        return f"would be: {counts}; {_many(report.chunks, 'chunk')} in them"
    chunks, extractions = _many(report.chunks, "chunk"), _many(report.extractions, "extraction")
    lines = [f"files: {counts}", f"written: {chunks}, {extractions}"]
    if usage := report.text_usage:
        spent = f"{usage.prompt_tokens:,} tokens asked, {usage.completion_tokens:,} answered"
        lines.append(f"language model: {_many(usage.calls, 'call')}, {usage.failed:,} failed, {spent}")
    if report.unextracted:
        why = f": {printable(report.problem)}" if report.problem else ""
        lines.append(f"{_many(report.unextracted, 'chunk')} left for another run to extract from{why}")
    return "\n".join(lines)


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
