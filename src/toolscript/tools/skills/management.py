"""Management of skills, shared by all interfaces. A change is stored, then indexed at once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from toolscript.core.errors import Conflict, SetupError, ToolscriptError, Unavailable
from toolscript.core.items import JsonObject
from toolscript.core.namespaces import Namespaces
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import (
    DecidedBy,
    Skill,
    SkillEntry,
    SuggestedSkill,
    Suggestion,
    skill_id_of,
)
from toolscript.tools.model.skill_json import (
    MAX_DESCRIPTION,
    MAX_NAME,
    changed_skill,
    skill_from_json,
    skill_to_json,
)
from toolscript.tools.model.skills import Evidence, NearSkill
from toolscript.tools.ports import Assignments, Catalog, Suggestions, Taxonomy

PAGE = 200

BATCH = 64
# More skills than a person can oversee; further ones, in order of id, are not compared.
MAX_COMPARED = 10_000

OpenEmbedder = Callable[[], Awaitable[Embedder]]

EDIT_TRIES = 5
SKILLS_AT_ONCE = 100
INDEX_SECONDS = 10.0
NEAREST = 3
NEAREST_SECONDS = 10.0

# Writes the points of those of these skills that are stale; returns how many.
IndexSkills = Callable[[Collection[str]], Awaitable[int]]

logger = logging.getLogger(__name__)


async def all_skills(taxonomy: Taxonomy, *, active_only: bool = False) -> AsyncIterator[SkillEntry]:
    after = ""
    while page := await taxonomy.page(after, PAGE, active_only=active_only):
        for entry in page:
            yield entry
        after = page[-1].skill.id


class ActiveSkills:
    """The active skills in order of id, at most `maximum`."""

    def __init__(self, taxonomy: Taxonomy, maximum: int | None = None) -> None:
        self._taxonomy = taxonomy
        self._maximum = maximum
        self._revision = -1
        self._skills: tuple[Skill, ...] = ()

    async def now(self) -> tuple[Skill, ...]:
        """Return the active skills; the identical tuple until a skill changes."""
        revision = await self._taxonomy.revision()
        if revision != self._revision:
            self._skills, self._revision = await self._read(), revision
        return self._skills

    async def _read(self) -> tuple[Skill, ...]:
        skills: list[Skill] = []
        async for entry in all_skills(self._taxonomy, active_only=True):
            if len(skills) == self._maximum:
                break
            skills.append(entry.skill)
        return tuple(skills)


class NearestSkills:
    """Finds the skills nearest to a text. Embeds each skill once; the model opens with the first request."""

    def __init__(self, taxonomy: Taxonomy, open_embedder: OpenEmbedder) -> None:
        self._active_skills = ActiveSkills(taxonomy, MAX_COMPARED)
        self._open_embedder = open_embedder
        self._catching_up = asyncio.Lock()
        self._skills: Sequence[Skill] = ()
        self._vectors: dict[str, Vector] = {}

    async def to(self, text: str, count: int) -> tuple[NearSkill, ...]:
        """Return the active skills nearest to the text, best first."""
        embedder = await self._open_embedder()
        async with self._catching_up:
            await self._catch_up(embedder)
            skills, vectors = self._skills, [self._vectors[skill.text] for skill in self._skills]
        if not skills:
            return ()
        scores = np.stack(vectors) @ (await embedder.embed_texts([text]))[0]
        best = np.argsort(-scores, kind="stable")[:count]
        return tuple(NearSkill(skills[place], round(float(scores[place]), 4)) for place in best)

    async def _catch_up(self, embedder: Embedder) -> None:
        """Embed new skills in batches. A later call keeps the batches done before a timeout."""
        skills = await self._active_skills.now()
        if skills is self._skills:
            return
        new = [text for text in dict.fromkeys(skill.text for skill in skills) if text not in self._vectors]
        for first in range(0, len(new), BATCH):
            batch = new[first : first + BATCH]
            self._vectors.update(zip(batch, await embedder.embed_texts(batch), strict=True))
        texts = {skill.text for skill in skills}
        self._vectors = {text: vector for text, vector in self._vectors.items() if text in texts}
        self._skills = skills


class Routing(StrEnum):
    """Whether a change already affects routing, or only after a worker has indexed it."""

    DONE = "done"
    PENDING = "pending"


@dataclass(frozen=True)
class Written:
    entry: SkillEntry
    routing: Routing


@dataclass(frozen=True)
class Decided:
    suggestion: Suggestion
    routing: Routing


@dataclass(frozen=True)
class SkillManagement:
    taxonomy: Taxonomy
    assignments: Assignments
    suggestions: Suggestions
    catalog: Catalog
    nearest: NearestSkills
    index_skills: IndexSkills

    def within(self, namespaces: Namespaces) -> "SkillManagement":
        """Return the management of what belongs to these namespaces: anything else is unknown."""
        return replace(
            self,
            taxonomy=self.taxonomy.within(namespaces),
            assignments=self.assignments.within(namespaces),
            suggestions=self.suggestions.within(namespaces),
        )

    async def add(self, skill: Skill, by: DecidedBy) -> Written:
        return Written(await self.taxonomy.add(skill, by), await self.route([skill.id]))

    async def replace(self, skill: Skill, by: DecidedBy) -> Written:
        return Written(await self.taxonomy.change(skill, by), await self.route([skill.id]))

    async def edit(self, skill_id: str, changes: JsonObject, by: DecidedBy) -> Written:
        return await self._edit(skill_id, lambda skill: changed_skill(skill, changes), by)

    async def set_active(self, skill_id: str, is_active: bool, by: DecidedBy) -> Written:
        return await self._edit(skill_id, lambda skill: replace(skill, is_active=is_active), by)

    async def _edit(self, skill_id: str, edited: Callable[[Skill], Skill], by: DecidedBy) -> Written:
        """Edit the current skill, and retry on a conflict, so that concurrent edits are not lost."""
        for _ in range(EDIT_TRIES - 1):
            with suppress(Conflict):
                return await self._edit_once(skill_id, edited, by)
        return await self._edit_once(skill_id, edited, by)

    async def _edit_once(self, skill_id: str, edited: Callable[[Skill], Skill], by: DecidedBy) -> Written:
        skill = (await self.taxonomy.find(skill_id)).skill
        entry = await self.taxonomy.change(edited(skill), by, instead_of=skill)
        return Written(entry, await self.route([skill_id]))

    async def evidence(self, suggestion_id: int, after: int, limit: int) -> Evidence:
        suggestion = await self.suggestions.find(suggestion_id)
        ids = list(await self.suggestions.asked_by(suggestion_id, after, limit + 1))
        items = await self.catalog.items(ids[:limit])
        more_after = ids[limit - 1] if len(ids) > limit else None
        nearest, reason = await self._nearest(suggestion.suggested)
        return Evidence(suggestion, items, more_after, nearest, reason)

    async def approve(self, suggestion_id: int, changes: JsonObject, by: DecidedBy) -> Decided:
        """Approve a suggestion. `changes` are the reviewer's changes to the suggested skill."""
        suggestion = await self.suggestions.find(suggestion_id)
        skill = skill_from_json({**_skill_of(suggestion), **changes})
        return Decided(await self.suggestions.approve(suggestion_id, skill, by), await self.route([skill.id]))

    async def undo(self, suggestion_id: int, by: DecidedBy) -> Decided:
        """Undo an approved proposal: deactivate its skill, and classify its items again in the background."""
        undone = await self.suggestions.undo(suggestion_id, by)
        return Decided(undone, await self.route([undone.skill_id]) if undone.skill_id else Routing.DONE)

    async def route(self, skill_ids: Sequence[str]) -> Routing:
        """Index changed skills now. If that fails, a worker does it later."""
        try:
            async with asyncio.timeout(INDEX_SECONDS):
                for first in range(0, len(skill_ids), SKILLS_AT_ONCE):
                    await self.index_skills(skill_ids[first : first + SKILLS_AT_ONCE])
        except (ToolscriptError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            logger.warning("changed skills are not indexed yet", extra={"part": "index", "reason": reason})
            return Routing.PENDING
        return Routing.DONE

    async def _nearest(self, suggested: SuggestedSkill) -> tuple[tuple[NearSkill, ...] | None, str]:
        text = Skill("", suggested.name, suggested.description).text
        try:
            async with asyncio.timeout(NEAREST_SECONDS):
                return await self.nearest.to(text, NEAREST), ""
        except (Unavailable, SetupError, TimeoutError) as error:
            reason = str(error) or "the model did not answer in time"
            logger.info("no nearest skills", extra={"part": "embedding", "reason": reason})
            return None, reason


def _skill_of(suggestion: Suggestion) -> dict[str, object]:
    """Return the skill that approving adds, as JSON: that of a proposal has keywords and examples."""
    creates = () if suggestion.change is None else suggestion.change.creates
    return dict(skill_to_json(creates[0])) if creates else proposed(suggestion.suggested)


def proposed(suggested: SuggestedSkill) -> dict[str, object]:
    """Return the suggested skill as JSON; without an id if the name yields none."""
    skill_id = skill_id_of(suggested.name)
    fields: dict[str, object] = {
        "name": suggested.name[:MAX_NAME],
        "description": suggested.description[:MAX_DESCRIPTION],
    }
    return {"id": skill_id, **fields} if skill_id else fields
