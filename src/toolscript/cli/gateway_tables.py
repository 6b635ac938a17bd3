"""Text output of the gateway's commands."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolscript.cli.output import colour_wanted, harmless, json_text, printable, say, table, table_by_step
from toolscript.core.items import SEPARATOR, Item, ItemKind, JsonObject, tool_id
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.core.signatures import signature
from toolscript.gateway.approvals import HELD_UNTIL, Review
from toolscript.gateway.model import (
    HOW_TO_GET_SERVERS,
    LOWER_THRESHOLD,
    LocalAnswer,
    LocalHit,
    LocalStep,
    WordMatch,
)
from toolscript.gateway.rules import Basis, claimed_risk

if TYPE_CHECKING:
    from toolscript.gateway.doctor import Finding

MAX_DESCRIBED = 80
MAX_WORDS = 8


def show_answer(answer: LocalAnswer, *, explain: bool) -> None:
    if answer.all_hits:
        sys.stdout.write(_table(answer, answer.hits) + "\n")
        for hit in answer.all_hits if explain else ():
            sys.stdout.write(f"\n{_explained(hit, semantic=answer.semantic)}\n")
        say_if_a_guess(answer)
    else:
        _show_guesses(answer, explain=explain)
    if explain and answer.read_as:
        say(f"read as: {printable(answer.read_as)}")
    for rule in answer.rules if explain else ():
        say(f"rule: {printable(rule)}")
    if answer.hint:
        # On the command line the threshold is an option.
        say(f"hint: {answer.hint.replace(LOWER_THRESHOLD, 'a lower --threshold')}")
        if HELD_UNTIL in answer.hint:
            say("hint: `toolscript review list` names what is held")


def _table(answer: LocalAnswer, hits: Sequence[LocalHit]) -> str:
    """Return the hits or the nearest; those of a request for several things by step."""
    head = ["Tool", "Confidence", "Reason"]
    if not answer.steps:
        return table(head, [*map(_row, hits)], colour=colour_wanted())
    return table_by_step(head, [(step.query, _rows_of_step(step)) for step in answer.steps])


def _rows_of_step(step: LocalStep) -> list[list[str]]:
    """Return the hits of a step, or the nearest tools, marked."""
    if step.hits:
        return [*map(_row, step.hits)]
    return [[*cells, f"a guess: {reason}"] for *cells, reason in map(_row, step.near_misses)]


def _row(hit: LocalHit) -> list[str]:
    deprecated = " (deprecated)" if hit.deprecated else ""
    also = _also(hit) if hit.also else ""
    return [_name(hit.item), f"{hit.confidence:.2f}", f"{hit.reason}{deprecated}{also}"]


def _also(hit: LocalHit) -> str:
    def named(name: str) -> str:
        path = hit.paths.get(name.partition(SEPARATOR)[0])
        return f"{name} for {path}" if path else name

    own = hit.paths.get(hit.item.server)
    return f" ({f'for {own}; ' if own else ''}also {', '.join(map(named, hit.also))})"


def say_if_a_guess(answer: LocalAnswer) -> None:
    """Warn if there is no good match: a low threshold returns hits for every query."""
    if not answer.good_match:
        unmatched = _unmatched(answer)
        say(f"no good match: the best of these is a guess{unmatched and f'; {unmatched}'}")


def _show_guesses(answer: LocalAnswer, *, explain: bool) -> None:
    """Say that nothing was found, and show the nearest tools as hits are shown."""
    is_near = answer.is_below_threshold
    verdict = f"none reaches {answer.threshold:g}" if is_near else "no good match"
    say(f"No tools found matching query {printable(answer.query)!r}: {verdict}")
    # Without near misses, the words are not the cause.
    if answer.near_misses and not is_near and (unmatched := _unmatched(answer)):
        say(f"  {unmatched}")
    if answer.near_misses:
        say("the nearest:" if is_near else "the nearest, which are guesses:")
        # Results alone go to the standard output.
        say(_table(answer, answer.near_misses))
    for miss in answer.near_misses if explain else ():
        say(f"\n{_explained(miss, semantic=answer.semantic)}")


def _unmatched(answer: LocalAnswer) -> str:
    more = len(answer.unmatched) - MAX_WORDS
    words = f"{', '.join(answer.unmatched[:MAX_WORDS])}{f' and {more} more' if more > 0 else ''}"
    return f"matched nothing: {printable(words)}" if words else ""


def _explained(hit: LocalHit, *, semantic: bool) -> str:
    parts = hit.parts
    unknown = "not among the nearest" if semantic else "no model"
    semantic_score = unknown if parts.semantic is None else f"{parts.semantic:.2f}"
    scores = (
        f"semantic {semantic_score}, words {parts.words:.2f}, name {parts.fuzzy:.2f}, capability {parts.boost:.2f}"
    )
    matched = ", ".join(map(_matched, parts.matched)) or "no word"
    contributions = ", ".join(f"{name} {value:+.2f}" for name, value in parts.contributions.items()) or "nothing"
    lines = [
        printable(_name(hit.item)),
        f"  {printable(hit.item.description)[:MAX_DESCRIBED]}",
        *([f"  call: {call}"] if (call := signature(hit.item)) else []),
        f"  {scores}",
        f"  matched: {printable(matched)}",
        f"  score: {printable(contributions)}",
        *([] if parts.probability is None else [f"  probability: {parts.probability:.2f}"]),
        *([f"  risk: {hit.risk.shown}"] if hit.risk else []),
    ]
    return "\n".join(lines)


def _matched(match: WordMatch) -> str:
    return f"{match.word}{f' as {match.read_as}' if match.read_as else ''} in {match.field}"


def show_servers(states: Sequence[ServerState]) -> None:
    if not states:
        say(f"no servers\nhint: {HOW_TO_GET_SERVERS}")
        return
    rows = [
        [
            state.name,
            state.status,
            str(state.tools),
            str(state.prompts),
            str(state.resources),
            state.protocol,
            state.error,
        ]
        for state in states
    ]
    head = ["Server", "Status", "Tools", "Prompts", "Resources", "Protocol", "Error"]
    sys.stdout.write(table(head, rows, colour=colour_wanted()) + "\n")


def show_items(items: Sequence[Item], held: Sequence[Review] = ()) -> None:
    """Print the items, and those that are held after them, without a word of their definitions."""
    rows = [[_name(item), item.kind, printable(item.description)[:MAX_DESCRIBED], _claim(item)] for item in items]
    rows += [[printable(review.tool), review.kind, f"(held: {review.status})", ""] for review in held]
    sys.stdout.write(table(["Tool", "Kind", "Description", "Risk"], rows, colour=colour_wanted()) + "\n")


def show_call(result: CallResult) -> None:
    """Print text blocks as text and others as JSON; structured content only if there are no blocks."""
    for block in result.content:
        text = block.get("text") if block.get("type") == "text" else None
        output = str(text) if text is not None else _data(block)
        # In a pipe it is data and stays unchanged; a terminal would interpret control characters.
        sys.stdout.write((harmless(output) if sys.stdout.isatty() else output) + "\n")
    if not result.content and result.structured_content is not None:
        sys.stdout.write(json_text(result.structured_content) + "\n")


def _data(block: JsonObject) -> str:
    """Return the block as JSON; on a terminal only a summary of a picture or a sound."""
    if block.get("type") not in ("image", "audio") or not sys.stdout.isatty():
        return json.dumps(block, ensure_ascii=False)
    size = len(str(block.get("data", ""))) * 3 // 4
    return f"[{block['type']}, {block.get('mimeType')}, {size:,} bytes; --json prints it]"


def _claim(item: Item) -> str:
    """Return what a tool claims about its risk; nothing where it claims nothing."""
    risk = claimed_risk(item.annotations)
    return risk.shown if item.kind is ItemKind.TOOL and risk.basis is Basis.CLAIM else ""


def _name(item: Item) -> str:
    name = tool_id(item.server, item.name)
    return name if item.kind is ItemKind.TOOL else f"{name} ({item.kind})"


def show_findings(findings: "Sequence[Finding]", *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_text({"findings": [asdict(finding) for finding in findings]}) + "\n")
        return
    for finding in findings:
        sys.stdout.write(f"{'ok  ' if finding.ok else 'FIX '} {finding.code}: {printable(finding.message)}\n")
        if finding.fix:
            sys.stdout.write(f"      {printable(finding.fix)}\n")
