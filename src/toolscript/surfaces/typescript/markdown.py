"""Types as an answer to a search: a table of what was found, the module, an example."""

import re
from collections.abc import Iterable, Sequence

# What could end a cell, start code, or become a link or a tag.
_SPECIAL = re.compile(r"[\\|`<>\[\]*~]")
_SAVED_AS = (
    "`toolscript get-types > toolscript.ts` saves such a module; import it as `./toolscript.ts` where "
    "`toolscript` is mapped to nothing.\n"
)
_TABLE_HEAD = "| Tool | Confidence | Reason |\n|------|-----------|--------|\n"


def search_preamble(rows: Sequence[tuple[str, float, str]]) -> str:
    """The table of tool, confidence and reason."""
    lines = [_row((tool, f"{confidence:.2f}", reason)) for tool, confidence, reason in rows]
    return f"## Search Results\n\n{_TABLE_HEAD}{''.join(lines)}"


def types_document(rows: Sequence[tuple[str, float, str]], module: str, usage: str) -> str:
    """The table, the module, and the example where there is one."""
    parts = [search_preamble(rows), fenced(module)]
    if usage:
        parts += ["Usage example:\n" + fenced(usage), _SAVED_AS]
    return "\n".join(parts)


def fenced(code: str) -> str:
    """TypeScript between fences that are longer than any within it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}typescript\n{code.rstrip()}\n{fence}\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(text: str) -> str:
    shown = "".join(one if one.isprintable() else " " for one in text)
    return _SPECIAL.sub(r"\\\g<0>", " ".join(shown.split()))
