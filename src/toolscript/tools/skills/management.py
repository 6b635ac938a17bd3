"""What people do with skills, the same from every surface. A change is stored first, and then followed at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from toolscript.errors import Conflict, SetupError, ToolscriptError, Unavailable
from toolscript.model.items import JsonObject
from toolscript.model.skill_evidence import Evidence, NearSkill
from toolscript.model.skill_json import MAX_DESCRIPTION, MAX_NAME, changed_skill, skill_from_json
from toolscript.model.skills import Skill, SkillEntry, SuggestedSkill, Suggestion, skill_id_of
from toolscript.ports import Assignments, Catalog, Suggestions, Taxonomy
from toolscript.sync.nearest_skills import NearestSkills

EDIT_TRIES = 5
FOLLOWED_AT_ONCE = 100
FOLLOW_SECONDS = 10.0
NEAREST = 3
NEAREST_SECONDS = 10.0

logger = logging.getLogger(__name__)

# Writes the points of these skills where they are behind; answers how many it wrote.
Follow = Callable[[Collection[str]], Awaitable[int]]


class Routing(StrEnum):
    """Whether searches are routed by a change already, or only once a worker has followed it."""

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
    follow: Follow

    async def add(self, skill: Skill, by: str) -> Written:
        return Written(await self.taxonomy.add(skill, by), await self.route([skill.id]))

    async def replace(self, skill: Skill, by: str) -> Written:
        return Written(await self.taxonomy.change(skill, by), await self.route([skill.id]))

    async def edit(self, skill_id: str, changes: JsonObject, by: str) -> Written:
        return await self._edit(skill_id, lambda known: changed_skill(known, changes), by)

    async def set_active(self, skill_id: str, is_active: bool, by: str) -> Written:
        return await self._edit(skill_id, lambda known: replace(known, is_active=is_active), by)

    async def _edit(self, skill_id: str, edited: Callable[[Skill], Skill], by: str) -> Written:
        """What others change at the same time stays changed: the edit is made to what is there now."""
        for _ in range(EDIT_TRIES - 1):
            with suppress(Conflict):
                return await self._edit_once(skill_id, edited, by)
        return await self._edit_once(skill_id, edited, by)

    async def _edit_once(self, skill_id: str, edited: Callable[[Skill], Skill], by: str) -> Written:
        known = (await self.taxonomy.find(skill_id)).skill
        entry = await self.taxonomy.change(edited(known), by, instead_of=known)
        return Written(entry, await self.route([skill_id]))

    async def evidence(self, suggestion_id: int, after: int, limit: int) -> Evidence:
        suggestion = await self.suggestions.find(suggestion_id)
        ids = list(await self.suggestions.asked_by(suggestion_id, after, limit + 1))
        items = await self.catalog.items(ids[:limit])
        more_after = ids[limit - 1] if len(ids) > limit else None
        nearest, reason = await self._nearest(suggestion.suggested)
        return Evidence(suggestion, items, more_after, nearest, reason)

    async def approve(self, suggestion_id: int, changes: JsonObject, by: str) -> Decided:
        """`changes` are what the person wants different from what was suggested."""
        suggestion = await self.suggestions.find(suggestion_id)
        skill = skill_from_json({**proposed(suggestion.suggested), **changes})
        return Decided(await self.suggestions.approve(suggestion_id, skill, by), await self.route([skill.id]))

    async def route(self, skill_ids: Sequence[str]) -> Routing:
        """Has the points of changed skills written now. What cannot be now is done by a worker later."""
        try:
            async with asyncio.timeout(FOLLOW_SECONDS):
                for first in range(0, len(skill_ids), FOLLOWED_AT_ONCE):
                    await self.follow(skill_ids[first : first + FOLLOWED_AT_ONCE])
        except (ToolscriptError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            logger.warning("changed skills have yet to be indexed", extra={"part": "index", "reason": reason})
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


def proposed(suggested: SuggestedSkill) -> dict[str, object]:
    """The skill as it was suggested; without an id where the name gives none."""
    skill_id = skill_id_of(suggested.name)
    fields: dict[str, object] = {
        "name": suggested.name[:MAX_NAME],
        "description": suggested.description[:MAX_DESCRIPTION],
    }
    return {"id": skill_id, **fields} if skill_id else fields
