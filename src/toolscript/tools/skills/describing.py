"""Descriptions of skills made from their items. What people wrote stays beside them, as it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolscript.core.items import AssignedBy, Item
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.taxonomy import EnhancedDescription, Member, Skill, SkillEntry
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.ports import Taxonomy
from toolscript.tools.skills.management import all_skills
from toolscript.tools.skills.proposer import SkillNamer, TermShares, name_of, term_shares, terms_of

SKILLS_AT_ONCE = 50
# Of a large skill so many items are read, a few from each of several places of its ids.
MAX_SAMPLE, AT_ONE_PLACE = 200, 10
# What is frequent everywhere says nothing about a skill: it is learned from so many skills, and items of each.
OTHER_SKILLS, OF_OTHER_SKILL = 100, 30
MAX_EXAMPLES = 6


@dataclass(frozen=True)
class Describer:
    """Describes new and changed skills by samples of their items. `names` is None without a language model."""

    taxonomy: Taxonomy
    names: SkillNamer | None = None

    async def describe(
        self, namespace: str = DEFAULT_NAMESPACE, on_progress: OnProgress = silent
    ) -> list[EnhancedDescription]:
        """Describe the skills whose items have not been described since they changed; return what was stored."""
        items = self.taxonomy.within(frozenset({namespace}))
        stored: list[EnhancedDescription] = []
        others: TermShares | None = None
        while entries := await self.taxonomy.undescribed(namespace, _last(stored), SKILLS_AT_ONCE):
            others = others or await _shares_of_others(items)
            skills = [await _described(items, entry, others) for entry in entries]
            better = {} if self.names is None else await self.names.better(list(map(_with_examples, skills)))
            descriptions = [
                EnhancedDescription(entry, namespace, *_words(skill, better.get(skill.id)))
                for entry, skill in zip(entries, skills, strict=True)
            ]
            await self.taxonomy.describe(descriptions)
            stored += descriptions
            on_progress(Progress("describe", len(stored)))
        return stored


def _last(stored: Sequence[EnhancedDescription]) -> str:
    return stored[-1].entry.skill.id if stored else ""


def _with_examples(skill: Skill) -> tuple[Skill, tuple[str, ...]]:
    return skill, skill.examples


def _words(skill: Skill, better: Skill | None) -> tuple[str, AssignedBy]:
    return (skill.description, AssignedBy.RULES) if better is None else (better.description, AssignedBy.LLM)


async def _described(taxonomy: Taxonomy, entry: SkillEntry, others: TermShares) -> Skill:
    """Return the skill with the words of its items: description, keywords, and the surest items as examples."""
    sample = await _sample(taxonomy, entry.skill.id, MAX_SAMPLE)
    members = sorted(sample, key=lambda one: (-one.assignment.confidence, one.item_id))
    named = name_of(list(map(_item, members)), others)
    examples = tuple(dict.fromkeys(member.name for member in members))[:MAX_EXAMPLES]
    return replace(entry.skill, description=named.description, keywords=named.terms, examples=examples)


async def _sample(taxonomy: Taxonomy, skill_id: str, size: int) -> list[Member]:
    """Return up to `size` members, from all over the ids: items of one server are beside each other."""
    first = await taxonomy.members(skill_id, 0, size)
    if len(first) < size:
        return list(first)
    lowest, last = first[0].item_id, await taxonomy.last_member(skill_id)
    found, places = {}, size // AT_ONE_PLACE
    for place in range(places):
        after = lowest - 1 + (last - lowest) * place // places
        page = await taxonomy.members(skill_id, after, AT_ONE_PLACE)
        found.update({member.item_id: member for member in page})
    return list(found.values())


async def _shares_of_others(taxonomy: Taxonomy) -> TermShares:
    """Sample each of many skills: what is frequent everywhere says nothing about one of them."""
    skills = [entry.skill.id async for entry in all_skills(taxonomy, active_only=True) if entry.tool_count]
    items: list[Item] = []
    for skill_id in skills[:: max(1, -(-len(skills) // OTHER_SKILLS))]:
        items += map(_item, await _sample(taxonomy, skill_id, OF_OTHER_SKILL))
    return term_shares(list(map(terms_of, items)))


def _item(member: Member) -> Item:
    return Item("", member.kind, member.server, member.name, member.description)
