"""What people do with skills, the same over every interface. A change is stored, then indexed at once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from toolscript.core.errors import Conflict, SetupError, ToolscriptError, Unavailable
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import Skill, SkillEntry, SuggestedSkill, Suggestion, skill_id_of
from toolscript.tools.model.skill_json import MAX_DESCRIPTION, MAX_NAME, changed_skill, skill_from_json
from toolscript.tools.model.skills import Evidence, NearSkill
from toolscript.tools.ports import Assignments, Catalog, Suggestions, Taxonomy

PAGE = 200

BATCH = 64
# More skills than a person can oversee; those after it in order of id are not compared.
MAX_COMPARED = 10_000

OpenEmbedder = Callable[[], Awaitable[Embedder]]

EDIT_TRIES = 5
FOLLOWED_AT_ONCE = 100
FOLLOW_SECONDS = 10.0
NEAREST = 3
NEAREST_SECONDS = 10.0

# Writes the points of these skills where they are behind; answers how many it wrote.
Follow = Callable[[Collection[str]], Awaitable[int]]

logger = logging.getLogger(__name__)


async def all_skills(taxonomy: Taxonomy, *, active_only: bool = False) -> AsyncIterator[SkillEntry]:
    after = ""
    while page := await taxonomy.page(after, PAGE, active_only=active_only):
        for entry in page:
            yield entry
        after = page[-1].skill.id


class ActiveSkills:
    """In order of id, and no more than `most` of them."""

    def __init__(self, taxonomy: Taxonomy, maximum: int | None = None) -> None:
        self._taxonomy = taxonomy
        self._maximum = maximum
        self._revision = -1
        self._skills: tuple[Skill, ...] = ()

    async def now(self) -> tuple[Skill, ...]:
        """The very same tuple for as long as nothing has changed."""
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
    """Makes the vector of each skill's text once, with a model that is opened when it is first asked."""

    def __init__(self, taxonomy: Taxonomy, open_embedder: OpenEmbedder) -> None:
        self._active_skills = ActiveSkills(taxonomy, MAX_COMPARED)
        self._open_embedder = open_embedder
        self._catching_up = asyncio.Lock()
        self._skills: Sequence[Skill] = ()
        self._vectors: dict[str, Vector] = {}

    async def to(self, text: str, count: int) -> tuple[NearSkill, ...]:
        """Active skills, the nearest first."""
        embedder = await self._open_embedder()
        async with self._catching_up:
            await self._catch_up(embedder)
            skills, vectors = self._skills, [self._vectors[skill.text] for skill in self._skills]
        if not skills:
            return ()
        scores = np.stack(vectors) @ (await embedder.embed_passages([text]))[0]
        best = np.argsort(-scores, kind="stable")[:count]
        return tuple(NearSkill(skills[place], round(float(scores[place]), 4)) for place in best)

    async def _catch_up(self, embedder: Embedder) -> None:
        """What was embedded before somebody lost patience is not embedded again."""
        skills = await self._active_skills.now()
        if skills is self._skills:
            return
        new = [text for text in dict.fromkeys(skill.text for skill in skills) if text not in self._vectors]
        for first in range(0, len(new), BATCH):
            batch = new[first : first + BATCH]
            self._vectors.update(zip(batch, await embedder.embed_passages(batch), strict=True))
        wanted = {skill.text for skill in skills}
        self._vectors = {text: vector for text, vector in self._vectors.items() if text in wanted}
        self._skills = skills


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
