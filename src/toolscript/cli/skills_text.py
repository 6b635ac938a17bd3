"""Text output of skills. Control characters in texts of language models and servers are removed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolscript.cli.output import colour_wanted, printable, table, table_by_namespace
from toolscript.core.items import Assignment, tool_id
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.taxonomy import Actor, AuditEntry, EnhancedDescription, Member, Skill, SkillEntry, Suggestion
from toolscript.tools.model.skills import Evidence

if TYPE_CHECKING:
    from toolscript.tools.model.proposals import Proposal

MAX_DESCRIBED = 80


def skills_table(entries: Sequence[SkillEntry]) -> str:
    rows = [
        [
            entry.skill.id,
            entry.skill.name,
            f"{entry.tool_count:,}",
            _state(entry.skill),
            _short(entry.skill.description),
        ]
        for entry in entries
    ]
    return table(["Skill", "Name", "Items", "State", "Description"], rows, colour=colour_wanted())


def skill_text(entry: SkillEntry, members: Sequence[Member]) -> str:
    skill = entry.skill
    facts = {
        "name": skill.name,
        "state": _state(skill),
        "description": skill.description,
        "made from its items": entry.enhanced_description,
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
            str(member.item_id),
            tool_id(member.server, member.name),
            f"{member.assignment.confidence:.2f}",
            str(member.assignment.source),
            _short(member.description),
        ]
        for member in members
    ]
    return table(["Item", "Tool", "Confidence", "By", "Description"], rows, colour=colour_wanted())


def assigned_text(item_id: int, assignments: Sequence[Assignment]) -> str:
    if not assignments:
        return f"item {item_id} is in no skill"
    rows = [
        [assignment.skill_id, f"{assignment.confidence:.2f}", str(assignment.source), assignment.reason]
        for assignment in assignments
    ]
    return table(["Skill", "Confidence", "By", "Reason"], rows, colour=colour_wanted())


def suggestions_table(suggestions: Sequence[Suggestion]) -> str:
    rows = [
        [
            str(suggestion.id),
            suggestion.suggested.name,
            str(suggestion.kind),
            _progress(suggestion),
            f"{suggestion.asked_by:,}",
            suggestion.skill_id or "",
            suggestion.reviewed_by or "",
            _short(suggestion.suggested.description),
        ]
        for suggestion in suggestions
    ]
    head = ["Id", "Name", "Kind", "Status", "Items", "Skill", "Reviewed by", "Description"]
    return table_by_namespace(head, rows, [suggestion.namespace for suggestion in suggestions])


def evidence_text(evidence: Evidence) -> str:
    suggestion = evidence.suggestion
    facts = {
        "description": suggestion.suggested.description,
        "status": str(suggestion.state),
        "namespace": "" if suggestion.namespace == DEFAULT_NAMESPACE else suggestion.namespace,
        "suggested for": f"{suggestion.asked_by:,} {'item' if suggestion.asked_by == 1 else 'items'}",
    }
    lines = [f"{suggestion.id}: {printable(suggestion.suggested.name)}", *_facts(facts)]
    lines += _change_lines(suggestion)
    for stored in evidence.items:
        name = printable(tool_id(stored.item.server, stored.item.name))
        lines.append(f"    {name}: {_short(stored.item.description)}")
    return "\n".join([*lines, *_nearest(evidence)])


def audit_table(entries: Sequence[tuple[int, AuditEntry]]) -> str:
    rows = [
        [
            str(number),
            entry.at.isoformat(timespec="seconds"),
            _who(entry),
            entry.action,
            entry.subject,
            _short(_details_text(entry.details)),
        ]
        for number, entry in entries
    ]
    head, namespaces = (
        ["Number", "When", "Who", "What", "Of", "Details"],
        [entry.namespace for _, entry in entries],
    )
    return table_by_namespace(head, rows, namespaces)


def _who(entry: AuditEntry) -> str:
    return str(Actor(entry.actor, entry.on_behalf_of))


def proposals_table(proposals: Sequence["Proposal"]) -> str:
    rows = [
        [
            proposal.skill.id,
            proposal.skill.name,
            f"{proposal.evidence.members:,}",
            f"{proposal.evidence.members / max(1, proposal.evidence.catalog):.1%}",
            _short(proposal.skill.description),
        ]
        for proposal in proposals
    ]
    head = ["Skill", "Name", "Items", "Share", "Description"]
    return table(head, rows, colour=colour_wanted())


def descriptions_table(described: Sequence[EnhancedDescription]) -> str:
    rows = [[one.entry.skill.id, str(one.source), one.text] for one in described]
    return table(["Skill", "By", "Made from its items"], rows, colour=colour_wanted())


def _progress(suggestion: Suggestion) -> str:
    is_moving = suggestion.change is not None and suggestion.change.is_moving
    return f"{suggestion.state}, items follow" if is_moving else str(suggestion.state)


def _change_lines(suggestion: Suggestion) -> list[str]:
    change = suggestion.change
    if change is None:
        return []
    return [
        f"  creates {skill.id}: {printable(skill.name)}: {_short(skill.description)}" for skill in change.creates
    ]


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


def _details_text(details: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in details.items() if value is not None)


def _state(skill: Skill) -> str:
    return "active" if skill.is_active else "inactive"


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MAX_DESCRIBED else f"{line[: MAX_DESCRIBED - 1]}…"
