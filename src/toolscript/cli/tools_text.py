"""Text output of a service's answers. Control characters in their texts are removed."""

import json
from collections.abc import Iterator, Sequence

from toolscript.cli.output import colour_wanted, harmless, printable, table
from toolscript.core.items import ItemKind, tool_id
from toolscript.tools.model.answer import Explanation, MatchedBy, MatchedSkill, Timings, ToolAnswer, ToolHit
from toolscript.tools.model.query import Strategy

MAX_DESCRIBED = 80
MAX_NAMED = 8
LIKELY = 0.5

WITHOUT = {
    "embedding": "the embedding model did not answer: keyword search only",
    "skills": "not all skills were matched in time",
    "index": "the index did not answer every request: see `/readyz` of the service",
    "schemas": "the catalog did not answer: schemas are missing",
    "rerank": "the reranker did not answer in time: the order is that of the search",
}


def hits_table(hits: Sequence[ToolHit]) -> str:
    rows = [
        [_name(hit), f"{hit.score:.2f}", _share(hit.confidence), ", ".join(hit.skill_ids), _short(hit.description)]
        for hit in hits
    ]
    return table(["Tool", "Score", "Confidence", "Skills", "Description"], rows, colour=colour_wanted())


def skills_table(skills: Sequence[MatchedSkill]) -> str:
    rows = [
        [skill.id, _share(skill.score), str(skill.matched_by), f"{skill.tool_count:,}", _short(skill.description)]
        for skill in skills
    ]
    return table(["Skill", "Score", "Matched by", "Items", "Description"], rows, colour=colour_wanted())


def routing_text(answer: ToolAnswer, *, requested: object) -> str:
    """Describe which items were searched, and which were not."""
    if answer.strategy_used is Strategy.DIRECT:
        nothing_matched = requested != Strategy.DIRECT and "skills" not in answer.degraded and not answer.skills
        return "no skill matched: all items were searched" if nothing_matched else "all items were searched"
    count = len(answer.skill_ids_used or ())
    by = f"{count:,} {'skill' if count == 1 else 'skills'}: {_listed(answer.skills)}"
    if answer.strategy_used is Strategy.HYBRID:
        return f"all items were searched, and also those of {by}"
    return f"routed by {by}{_left_out(answer.unskilled_count)}"


def _left_out(unskilled: int | None) -> str:
    if not unskilled:
        return ""
    return f"; about {'1 item is' if unskilled == 1 else f'{unskilled:,} items are'} in no skill, and left out"


def degraded_lines(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        yield f"degraded: {WITHOUT.get(part, f'without {printable(part)}, which failed')}"


def doubt_lines(answer: ToolAnswer) -> Iterator[str]:
    """Yield doubts about the best hit: a low threshold returns hits for every query.

    A likely hit needs no warning about unmatched words, such as a name.
    """
    if answer.good_match and (answer.hits[0].confidence or 0.0) >= LIKELY:
        return
    guess = "no good match: the best of these is a guess" if answer.good_match is False else ""
    if doubts := [doubt for doubt in (guess, _unmatched(answer)) if doubt]:
        yield "; ".join(doubts)


def nothing_found_lines(answer: ToolAnswer) -> Iterator[str]:
    if answer.search_type_used == "none":
        yield f"nothing was searched for {printable(answer.query)!r}"
        return
    verdict = "no good match" if answer.good_match is False else "none reaches the threshold"
    yield f"nothing found for {printable(answer.query)!r}{f': {verdict}' if answer.near_misses else ''}"
    for miss in answer.near_misses:
        sure = "" if miss.confidence is None else f", confidence {miss.confidence:.2f}"
        yield f"  nearest: {printable(_name(miss))} (score {miss.score:.2f}{sure}): {_short(miss.description)}"
    # Without near misses, the words are not the cause.
    if answer.near_misses and (unmatched := _unmatched(answer)):
        yield f"  {unmatched}"
    if answer.near_misses:
        yield "hint: `--preset recall` or a lower `--threshold` shows them"
    elif answer.strategy_used is Strategy.HIERARCHICAL:
        yield "hint: `--strategy hybrid` searches the items of other skills too"


def explained_text(hit: ToolHit, matched: Sequence[MatchedSkill]) -> str:
    lines = [f"{_name(hit)}, item {hit.id}"]
    if hit.explanation is not None:
        lines += [*standing_lines(hit.explanation), _way(hit.skill_ids, hit.explanation, matched)]
    return "\n".join([printable(lines[0]), *(f"  {printable(line)}" for line in lines[1:])])


def standing_lines(explanation: Explanation) -> Iterator[str]:
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


def schemas_text(hit: ToolHit) -> str:
    schemas = hit.schemas
    named = {
        "input schema": schemas.input_schema,
        "output schema": schemas.output_schema,
        "annotations": schemas.annotations,
    }
    lines = [f"  {name}: {_pretty(schema)}" for name, schema in named.items() if schema is not None]
    return "\n".join([printable(_name(hit)), *(lines or ["  no schema"])])


def timings_text(timings: Timings) -> str:
    stages = {
        "embedding": timings.query_embedding,
        "skills": timings.skill_search,
        "tools": timings.tool_search,
        "schemas": timings.schema_load,
    }
    spent = ", ".join(f"{name} {ms:.0f}" for name, ms in stages.items() if ms >= 0.5)
    return f"took {timings.total:.0f} ms{f': {spent}' if spent else ''}"


def _way(skill_ids: Sequence[str], explanation: Explanation, matched: Sequence[MatchedSkill]) -> str:
    match_texts = {skill.id: _how(skill) for skill in matched if skill.id in explanation.matched_skills}
    described = [
        f"{skill} ({match_texts[skill]})" if skill in match_texts else f"{skill} (not matched)"
        for skill in skill_ids
    ]
    return f"skills: {', '.join(described) or 'none'}" if matched else f"skills: {', '.join(skill_ids) or 'none'}"


def _listed(skills: Sequence[MatchedSkill]) -> str:
    more = len(skills) - MAX_NAMED
    named = ", ".join(f"{skill.id} ({_how(skill)})" for skill in skills[:MAX_NAMED])
    return printable(f"{named}{f' and {more} more' if more > 0 else ''}")


def _how(skill: MatchedSkill) -> str:
    by = "vector" if skill.matched_by is MatchedBy.VECTOR else "words"
    return by if skill.score is None or by == "words" else f"{by} {skill.score:.2f}"


def _unmatched(answer: ToolAnswer) -> str:
    more = len(answer.unmatched) - MAX_NAMED
    words = f"{', '.join(answer.unmatched[:MAX_NAMED])}{f' and {more} more' if more > 0 else ''}"
    return f"matched nothing: {printable(words)}" if words else ""


def _name(hit: ToolHit) -> str:
    name = tool_id(hit.server, hit.name)
    return name if hit.kind is ItemKind.TOOL else f"{name} ({hit.kind})"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MAX_DESCRIBED else f"{line[: MAX_DESCRIBED - 1]}…"


def _pretty(schema: object) -> str:
    return harmless(json.dumps(schema, ensure_ascii=False, indent=2)).replace("\n", "\n  ")
