"""Skills as a person reads them. What a language model or a server said is shown, never obeyed by the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolscript.cli.output import colour_wanted, printable, table
from toolscript.core.items import Assignment, tool_id
from toolscript.core.taxonomy import AuditEntry, Member, Skill, SkillEntry, Suggestion
from toolscript.tools.model.skills import Evidence

MOST_DESCRIBED = 80


def skills_table(entries: Sequence[SkillEntry]) -> str:
    rows = [
        [one.skill.id, one.skill.name, f"{one.tool_count:,}", _state(one.skill), _short(one.skill.description)]
        for one in entries
    ]
    return table(["Skill", "Name", "Items", "State", "Description"], rows, colour=colour_wanted())


def skill_card(entry: SkillEntry, members: Sequence[Member]) -> str:
    skill = entry.skill
    facts = {
        "name": skill.name,
        "state": _state(skill),
        "description": skill.description,
        "domain": skill.parent_domain or "",
        "keywords": ", ".join(skill.keywords),
        "examples": ", ".join(skill.examples),
        "items": f"{entry.tool_count:,}",
        "changed": entry.updated_at.isoformat(timespec="seconds"),
    }
    lines = [skill.id, *_facts(facts)]
    return "\n".join([*lines, "", members_table(members)] if members else lines)


def members_table(members: Sequence[Member]) -> str:
    rows = [
        [
            str(one.item_id),
            tool_id(one.server, one.name),
            f"{one.assignment.confidence:.2f}",
            str(one.assignment.source),
            _short(one.description),
        ]
        for one in members
    ]
    return table(["Item", "Tool", "Confidence", "By", "Description"], rows, colour=colour_wanted())


def assigned_text(item_id: int, assignments: Sequence[Assignment]) -> str:
    if not assignments:
        return f"item {item_id} is in no skill"
    rows = [[one.skill_id, f"{one.confidence:.2f}", str(one.source), one.reason] for one in assignments]
    return table(["Skill", "Confidence", "By", "Reason"], rows, colour=colour_wanted())


def suggestions_table(suggestions: Sequence[Suggestion]) -> str:
    rows = [
        [
            str(one.id),
            one.suggested.name,
            str(one.state),
            f"{one.asked_by:,}",
            one.skill_id or "",
            one.reviewed_by or "",
            _short(one.suggested.description),
        ]
        for one in suggestions
    ]
    head = ["Id", "Name", "Status", "Asked by", "Skill", "Reviewed by", "Description"]
    return table(head, rows, colour=colour_wanted())


def evidence_card(evidence: Evidence) -> str:
    suggestion = evidence.suggestion
    facts = {
        "description": suggestion.suggested.description,
        "status": str(suggestion.state),
        "asked for by": f"{suggestion.asked_by:,} {'item' if suggestion.asked_by == 1 else 'items'}",
    }
    lines = [f"{suggestion.id}: {printable(suggestion.suggested.name)}", *_facts(facts)]
    for stored in evidence.items:
        name = printable(tool_id(stored.item.server, stored.item.name))
        lines.append(f"    {name}: {_short(stored.item.description)}")
    return "\n".join([*lines, *_nearest(evidence)])


def audit_table(entries: Sequence[tuple[int, AuditEntry]]) -> str:
    rows = [
        [
            str(number),
            one.at.isoformat(timespec="seconds"),
            one.actor,
            one.action,
            one.subject,
            _short(_told(one.details)),
        ]
        for number, one in entries
    ]
    return table(["Number", "When", "Who", "What", "Of", "Details"], rows, colour=colour_wanted())


def _nearest(evidence: Evidence) -> list[str]:
    if evidence.nearest is None:
        return [f"  nearest skills are not shown: {printable(evidence.reason)}"]
    if not evidence.nearest:
        return ["  there is no skill yet"]
    rows = [
        f"    {place}. {near.skill.id} ({near.score:.2f}): {_short(near.skill.description or near.skill.name)}"
        for place, near in enumerate(evidence.nearest, 1)
    ]
    return ["  nearest skills", *rows]


def _facts(facts: Mapping[str, str]) -> list[str]:
    return [f"  {name}: {printable(value)}" for name, value in facts.items() if value]


def _told(details: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in details.items() if value is not None)


def _state(skill: Skill) -> str:
    return "active" if skill.is_active else "inactive"


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MOST_DESCRIBED else f"{line[: MOST_DESCRIBED - 1]}…"
