"""Text output of a service's answers. Control characters in their texts are removed."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolscript.cli.output import colour_wanted, harmless, printable, table, table_by_step
from toolscript.core.items import tool_id
from toolscript.tools.model.answer import LOWER_THRESHOLD
from toolscript.tools.model.query import Strategy

if TYPE_CHECKING:
    from toolscript.client.answers.tools import Explanation, SkillMatch, ToolHit, ToolSearchAnswer, ToolSearchStep

MAX_DESCRIBED = 80
MAX_NAMED = 8
LIKELY = 0.5
STAGES = ("embedding", "skills", "tools", "schemas")

WITHOUT = {
    "embedding": "the embedding model did not answer: keyword search only",
    "skills": "not all skills were matched in time",
    "curation": "rules of curation were not applied",
    "spelling": "misspelt words were not corrected",
    "index": "the index did not answer every request: see `/readyz` of the service",
    "catalog": "the catalog did not answer: a tool that was removed a moment ago may be listed",
    "schemas": "the catalog did not answer: schemas are missing",
    "rerank": "the reranker did not answer in time: the order is that of the search",
}


_HEAD = ["Tool", "Score", "Confidence", "Skills", "Description"]


def hits_table(hits: Sequence["ToolHit"]) -> str:
    return table(_HEAD, list(map(_row, hits)), colour=colour_wanted())


def steps_table(steps: Sequence["ToolSearchStep"]) -> str:
    return table_by_step(_HEAD, [(step.query, [*map(_row, step.results)]) for step in steps])


def _row(hit: "ToolHit") -> list[str]:
    scores = (_share(hit.score), _share(hit.confidence))
    return [_name(hit), *scores, ", ".join(hit.skill_ids or ()), _short(hit.description)]


def skills_table(skills: Sequence["SkillMatch"]) -> str:
    rows = [
        [skill.id, _share(skill.score), str(skill.matched_by), f"{skill.tool_count:,}", _short(skill.description)]
        for skill in skills
    ]
    return table(["Skill", "Score", "Matched by", "Items", "Description"], rows, colour=colour_wanted())


def routing_text(answer: "ToolSearchAnswer", *, requested: object) -> str:
    """Describe which items were searched, and which were not."""
    metadata, matched = answer.metadata, answer.metadata.matched_skills or ()
    if metadata.strategy == "direct":
        nothing_matched = requested != Strategy.DIRECT and "skills" not in metadata.degraded and not matched
        return "no skill matched: all items were searched" if nothing_matched else "all items were searched"
    count = len(metadata.skill_ids or ())
    by = f"{count:,} {'skill' if count == 1 else 'skills'}: {_listed(matched)}"
    if metadata.strategy == "hybrid":
        return f"all items were searched, and also those of {by}"
    return f"routed by {by}{_left_out(metadata.unskilled_count)}"


def _left_out(unskilled: int | None) -> str:
    if not unskilled:
        return ""
    return f"; about {'1 item is' if unskilled == 1 else f'{unskilled:,} items are'} in no skill, and left out"


def degraded_lines(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        yield f"degraded: {WITHOUT.get(part, f'without {printable(part)}, which failed')}"


def doubt_lines(answer: "ToolSearchAnswer") -> Iterator[str]:
    """Yield doubts about the best hit: a low threshold returns hits for every query.

    A likely hit needs no warning about unmatched words, such as a name.
    """
    best = answer.results[0].confidence if answer.results else None
    if answer.metadata.good_match and (best or 0.0) >= LIKELY:
        return
    guess = "no good match: the best of these is a guess" if answer.metadata.good_match is False else ""
    if doubts := [doubt for doubt in (guess, _unmatched(answer)) if doubt]:
        yield "; ".join(doubts)
    if answer.metadata.hint:
        yield f"hint: {printable(answer.metadata.hint)}"


def nothing_found_lines(answer: "ToolSearchAnswer", query: str) -> Iterator[str]:
    metadata = answer.metadata
    if metadata.search_type == "none":
        yield f"nothing was searched for {printable(query)!r}"
        return
    verdict = "none reaches the threshold" if metadata.hint in (None, LOWER_THRESHOLD) else "no good match"
    yield f"nothing found for {printable(query)!r}{f': {verdict}' if metadata.near_misses else ''}"
    called = "a guess" if verdict == "no good match" else "nearest"
    for miss in metadata.near_misses:
        sure = "" if miss.confidence is None else f", confidence {miss.confidence:.2f}"
        score = f"score {_share(miss.score)}{sure}"
        yield f"  {called}: {printable(_name(miss))} ({score}): {_short(miss.description)}"
    # Without near misses, the words are not the cause.
    if metadata.near_misses and (unmatched := _unmatched(answer)):
        yield f"  {unmatched}"
    if metadata.hint and metadata.hint != LOWER_THRESHOLD:
        yield f"hint: {printable(metadata.hint)}"
    elif metadata.near_misses:
        yield "hint: `--preset recall` or a lower `--threshold` shows them"
    elif metadata.strategy == "hierarchical":
        yield "hint: `--strategy hybrid` searches the items of other skills too"


def explained_text(hit: "ToolHit", matched: Sequence["SkillMatch"]) -> str:
    lines = [f"{_name(hit)}, item {hit.id}"]
    if hit.explanation is not None:
        lines += [*standing_lines(hit.explanation), _way(hit.skill_ids or (), hit.explanation, matched)]
    return "\n".join([printable(lines[0]), *(f"  {printable(line)}" for line in lines[1:])])


def standing_lines(explanation: "Explanation") -> Iterator[str]:
    similarity, word_score = explanation.similarity, explanation.word_score
    facts = [
        f"place {explanation.place}" if explanation.place else "",
        f"similarity {'-' if similarity is None else f'{similarity:.3f}'}",
        f"words {'-' if word_score is None else f'{word_score:.2f}'}",
    ]
    yield ", ".join(filter(None, facts))
    if explanation.parts:
        parts = sorted(explanation.parts.items(), key=lambda part: -abs(part[1]))
        yield f"score: {', '.join(f'{name} {value:+.2f}' for name, value in parts)}"


def schemas_text(hit: "ToolHit") -> str:
    named = {
        "input schema": hit.input_schema,
        "output schema": hit.output_schema,
        "annotations": hit.annotations,
    }
    lines = [f"  {name}: {_pretty(schema)}" for name, schema in named.items() if schema is not None]
    return "\n".join([printable(_name(hit)), *(lines or ["  no schema"])])


def timings_text(answer: "ToolSearchAnswer") -> str:
    times = answer.metadata.stages_ms
    stages = {} if times is None else {name: getattr(times, name) for name in STAGES}
    spent = ", ".join(f"{name} {ms:.0f}" for name, ms in stages.items() if ms >= 0.5)
    return f"took {answer.metadata.took_ms:.0f} ms{f': {spent}' if spent else ''}"


def _way(skill_ids: Sequence[str], explanation: "Explanation", matched: Sequence["SkillMatch"]) -> str:
    routed = explanation.matched_skills or ()
    match_texts = {skill.id: _how(skill) for skill in matched if skill.id in routed}
    described = [
        f"{skill} ({match_texts[skill]})" if skill in match_texts else f"{skill} (not matched)"
        for skill in skill_ids
    ]
    return f"skills: {', '.join(described) or 'none'}" if matched else f"skills: {', '.join(skill_ids) or 'none'}"


def _listed(skills: Sequence["SkillMatch"]) -> str:
    more = len(skills) - MAX_NAMED
    named = ", ".join(f"{skill.id} ({_how(skill)})" for skill in skills[:MAX_NAMED])
    return printable(f"{named}{f' and {more} more' if more > 0 else ''}")


def _how(skill: "SkillMatch") -> str:
    by = "vector" if skill.matched_by == "vector" else "words"
    return by if skill.score is None or by == "words" else f"{by} {skill.score:.2f}"


def _unmatched(answer: "ToolSearchAnswer") -> str:
    unmatched = answer.metadata.unmatched_words
    more = len(unmatched) - MAX_NAMED
    words = f"{', '.join(unmatched[:MAX_NAMED])}{f' and {more} more' if more > 0 else ''}"
    return f"matched nothing: {printable(words)}" if words else ""


def _name(hit: "ToolHit") -> str:
    name = tool_id(hit.server, hit.name)
    return name if hit.kind == "tool" else f"{name} ({hit.kind})"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MAX_DESCRIBED else f"{line[: MAX_DESCRIBED - 1]}…"


def _pretty(schema: object) -> str:
    return harmless(json.dumps(schema, ensure_ascii=False, indent=2)).replace("\n", "\n  ")
