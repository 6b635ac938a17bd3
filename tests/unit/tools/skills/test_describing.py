"""Skills are described by their items: those that are new or changed, and by a bounded sample."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.tools.skills.test_skill_names import Model
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind
from toolscript.core.taxonomy import Classification, Classified, Member, Skill
from toolscript.testing import MemoryAssignments, MemoryCatalog, MemoryDirtySet, MemorySuggestions, MemoryTaxonomy
from toolscript.tools.skills.describing import MAX_SAMPLE, Describer
from toolscript.tools.skills.proposer import SkillNamer

pytestmark = pytest.mark.requirement("SK-011")

THINGS = (
    "river",
    "stone",
    "cloud",
    "garden",
    "violin",
    "bridge",
    "candle",
    "forest",
    "mirror",
    "pencil",
    "rocket",
)
INVOICES = ("Send an invoice to a customer.", "List the invoices of a month.", "Cancel an invoice that is open.")
TRAINS = ("Find a train between two stations.", "Show the delay of a train.", "Book a seat in a train.")


class CountedTaxonomy(MemoryTaxonomy):
    """Counts the members that were read."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        super().__init__(catalog)
        self.read = 0

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        members = await super().members(skill_id, after, limit)
        self.read += len(members)
        return members

    async def last_member(self, skill_id: str) -> int:
        return max(member.item_id for member in await super().members(skill_id, 0, 10_000))


async def taxonomy_of(skills: Mapping[str, Sequence[str]], *described: Skill) -> CountedTaxonomy:
    """Return a taxonomy with items of these descriptions in each skill."""
    catalog = MemoryCatalog(MemoryDirtySet())
    taxonomy = CountedTaxonomy(catalog)
    assignments = MemoryAssignments(catalog, taxonomy, MemorySuggestions(catalog, taxonomy))
    known = {skill.id: skill for skill in described}
    for skill_id, texts in skills.items():
        await taxonomy.add(known.get(skill_id, Skill(skill_id, skill_id.title())), "ann")
        keys = [f"{skill_id}_{number}" for number in range(len(texts))]
        items = [Item(key, ItemKind.TOOL, skill_id, key, text) for key, text in zip(keys, texts, strict=True)]
        await catalog.store(skill_id, items)
        for stored in await catalog.items([one.id for one in await catalog.scan(0, 10_000)]):
            if stored.item.server == skill_id:
                assigned = Classification((Assignment(skill_id, 0.9, AssignedBy.RULES, "said so"),))
                await assignments.record([Classified(stored.id, stored.version, assigned)])
    taxonomy.count_tools = lambda skill_id, _: len(skills[skill_id])
    return taxonomy


async def test_skills_are_described_by_their_items_and_keep_what_people_wrote() -> None:
    written = Skill("invoices", "Invoices", "Written by a person.", keywords=("bill",))
    taxonomy = await taxonomy_of({"invoices": INVOICES, "trains": TRAINS}, written)
    described = await Describer(taxonomy).describe()
    assert [(one.entry.skill.id, one.source) for one in described] == [
        ("invoices", AssignedBy.RULES),
        ("trains", AssignedBy.RULES),
    ]
    entry = await taxonomy.find("invoices")
    assert entry.skill == written
    assert "invoice" in entry.enhanced_description.casefold()
    assert "train" not in entry.enhanced_description.casefold()
    assert await Describer(taxonomy).describe() == []


async def test_of_a_large_skill_a_sample_from_all_its_ids_is_read() -> None:
    texts = [*(INVOICES[0] for _ in range(500)), *(TRAINS[0] for _ in range(500))]
    others = {thing: [f"Paint a {thing}."] * 10 for thing in THINGS}
    taxonomy = await taxonomy_of({"mixed": texts, **others})
    await Describer(taxonomy).describe()
    text = (await taxonomy.find("mixed")).enhanced_description.casefold()
    assert "invoice" in text
    assert "train" in text
    # The first page, the sample, and what other skills are compared with; not all items.
    assert taxonomy.read <= 3 * MAX_SAMPLE < len(texts)


async def test_a_language_model_describes_and_names_nothing() -> None:
    answer = {
        "skills": [{"number": 1, "name": "Invoices and bills", "description": "Sends and cancels invoices."}]
    }
    taxonomy = await taxonomy_of({"invoices": INVOICES})
    (described,) = await Describer(taxonomy, SkillNamer(Model(answer))).describe()
    entry = await taxonomy.find("invoices")
    assert (described.source, entry.enhanced_description) == (AssignedBy.LLM, "Sends and cancels invoices.")
    assert entry.skill.name == "Invoices"
