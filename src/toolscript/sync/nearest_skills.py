"""Which skills there are already that mean nearly the same: a person who reviews a suggestion has to know."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from toolscript.model.models import Vector
from toolscript.model.skill_evidence import NearSkill
from toolscript.model.skills import Skill
from toolscript.ports import Embedder, Taxonomy
from toolscript.sync.active_skills import ActiveSkills

BATCH = 64
# More skills than a person can oversee; those after it in order of id are not compared.
MOST_COMPARED = 10_000

OpenEmbedder = Callable[[], Awaitable[Embedder]]


class NearestSkills:
    """Makes the vector of each skill's text once, with a model that is opened when it is first asked."""

    def __init__(self, taxonomy: Taxonomy, open_embedder: OpenEmbedder) -> None:
        self._active_skills = ActiveSkills(taxonomy, MOST_COMPARED)
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
