"""Documents as a person reads them. All text of them is data: shown, never obeyed by the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolscript.cli.output import colour_wanted
from toolscript.cli.tables import BOLD, PLAIN, harmless, printable, table

HEAD = ["Document", "Score", "Title"]
INDENT = "    "
WITHOUT = {
    "embedding": "the embedding model did not answer: words alone were compared",
    "index": "the index did not answer every question",
    "rerank": "the best were not looked at once more",
}
ABOUT = {"exact": "", "at_least": "at least ", "about": "about "}


def hits_text(hits: Sequence[Mapping[str, Any]]) -> str:
    """A table with each document's snippet below its row."""
    rows = [[str(hit["doc_id"]), f"{hit['score']:.3f}", _title(hit["metadata"])] for hit in hits]
    head, *lines = table(HEAD, rows, colour=colour_wanted()).split("\n")
    shown = [head]
    for line, hit in zip(lines, hits, strict=True):
        shown += [line, *([f"{INDENT}{snippet_text(hit, colour=colour_wanted())}"] if hit.get("snippet") else [])]
    return "\n".join(shown)


def snippet_text(hit: Mapping[str, Any], *, colour: bool) -> str:
    """On one line, what matched in bold where there is colour. Places count characters, so none is dropped."""
    text, at, parts = str(hit["snippet"]), 0, list[str]()
    for start, end in sorted((int(start), int(end)) for start, end in hit["highlights"]):
        if colour and at <= start < end <= len(text):
            parts += [_flat(text[at:start]), BOLD, _flat(text[start:end]), PLAIN]
            at = end
    return "".join([*parts, _flat(text[at:])])


def counted_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """How many there are, and what went wrong."""
    total = f"{ABOUT.get(answer['total_is'], '')}{answer['total']:,}"
    yield f"{total} {'document' if answer['total'] == 1 else 'documents'}, {answer['took_ms']:.0f} ms"
    if answer["reranked_by"]:
        yield f"the best were put in order by {printable(str(answer['reranked_by']))}"
    for part in answer["degraded"]:
        yield f"degraded: {WITHOUT.get(part, f'without {printable(str(part))}, which failed')}"


def _title(metadata: Mapping[str, Any]) -> str:
    title = metadata.get("title")
    return title if isinstance(title, str) else ""


def _flat(text: str) -> str:
    return "".join(" " if char.isspace() else char for char in harmless(text))
