"""Items and skills of the catalog as points of their indexes."""

import logging
from collections.abc import Collection, Sequence

from toolscript.core.errors import Rejected
from toolscript.core.item_text import item_words, pack_stems, stems_of_words, terms_of_fields, terms_of_words
from toolscript.core.items import StoredItem
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import Point, Vector, type_skills
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.retrieval.terms import words_of
from toolscript.tools.model.centroids import SkillState
from toolscript.tools.ports import StaleSkills

MAX_DESCRIPTION = 4_000
BATCH = 200
MAX_TEXTS = 10_000

logger = logging.getLogger(__name__)


def point_of(stored: StoredItem, vector: Vector) -> Point:
    item = stored.item
    words = item_words(item)
    fields = {
        "db_id": stored.id,
        "type": item.kind.value,
        "server": item.server,
        "name": item.name,
        "description": item.description[:MAX_DESCRIPTION],
        "skill_ids": list(stored.skill_ids),
        "primary_skill_id": stored.primary_skill_id,
        "is_active": stored.is_active,
        "type_skill": type_skills(item.kind, stored.skill_ids),
        "stems": pack_stems(stems_of_words(words)),
        # Points of the default namespace stay as they were before there were others.
        **({} if stored.namespace == DEFAULT_NAMESPACE else {"namespace": stored.namespace}),
    }
    return Point(stored.id, stored.version, vector, terms_of_words(item, words), fields, stored.namespace)


def skill_point_of(state: SkillState, vector: Vector) -> Point:
    """Return the point of a skill in a namespace.

    Only the default namespace shows skills without items: in another one they would tell nothing but what others
    named them for.
    """
    skill = state.skill
    is_shown = state.total.members > 0 or state.namespace == DEFAULT_NAMESPACE
    words = {
        "name": words_of(skill.name),
        "description": words_of(" ".join((skill.description, *skill.keywords, *skill.examples))),
    }
    fields = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tool_count": state.total.members,
        "is_active": skill.is_active and is_shown,
    }
    return Point(state.point_id, state.version, vector, terms_of_fields(words), fields, state.namespace)


class SkillPoints:
    """Writes the points of skills. Safe in concurrent processes: a point has a version, and the newest wins."""

    def __init__(self, behind: StaleSkills, embedder: Embedder, index: Index, index_version: int) -> None:
        self._behind = behind
        self._embedder = embedder
        self._index = index
        self._index_version = index_version
        self._text_vectors: dict[str, Vector] = {}

    async def index_stale(self, only: Collection[str] = ()) -> int:
        """Write the next stale points, of all skills or only some; return how many."""
        states = await self._behind.behind(self._index_version, BATCH, only)
        try:
            await self._write(states)
        except Rejected:
            return sum([await self._write_one(state) for state in states])
        return len(states)

    async def _write_one(self, state: SkillState) -> bool:
        """Write one point; a rejected skill must not hold back the others."""
        try:
            await self._write([state])
        except Rejected as error:
            logger.warning("skill refused", extra={"part": state.skill.id, "reason": error.message})
            return False
        return True

    async def _write(self, states: Sequence[SkillState]) -> None:
        if states:
            vectors = await self._vectors_of(states)
            await self._index.put(list(map(skill_point_of, states, vectors)))
            await self._behind.mark_indexed(self._index_version, states)

    async def _vectors_of(self, states: Sequence[SkillState]) -> list[Vector]:
        """Return the centroid of each skill; the vector of its own text if it has no items."""
        means = [state.total.mean() for state in states]
        pairs = list(zip(states, means, strict=True))
        await self._embed([state.skill.text for state, mean in pairs if mean is None])
        return [self._text_vectors[state.skill.text] if mean is None else mean for state, mean in pairs]

    async def _embed(self, texts: Sequence[str]) -> None:
        if len(self._text_vectors) > MAX_TEXTS:
            self._text_vectors.clear()
        missing = list(dict.fromkeys(text for text in texts if text not in self._text_vectors))
        if missing:
            vectors = await self._embedder.embed_texts(missing)
            self._text_vectors.update(zip(missing, vectors, strict=True))
