"""What a search asks of the model and the engines, and nothing else: no reading, no ranking, no HTTP."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolscript.model.index import Ask, Candidates, Where
from toolscript.model.models import Vector
from toolscript.model.queries import USUAL, Strategy, ToolQuery
from toolscript.ports import Catalog, Embedder, Index
from toolscript.search.item_stage import where_of
from toolscript.search.point_memory import PointMemory, Revisions, revisions_of
from toolscript.search.ranking import CANDIDATES_PER_ARM, LOOKED_AT, Request, read_request
from toolscript.search.skill_matching import SkillMatching, SkillsOfItems
from toolscript.search.stages import Stages

RETURNED = ToolQuery.limit
SKILL_LIMIT = ToolQuery.skill_limit

Found = Sequence[Candidates]


@dataclass(frozen=True)
class BareAnswer:
    ids: Sequence[int]
    stages: Mapping[str, float]


@dataclass
class BarePipeline:
    """`prepare` reads the requests beforehand: what is asked is known when the clock starts.

    It remembers points and matches skills as a search does: what a search need not ask, it does not ask either,
    and which skills match decides what the engine has to do next.
    """

    embedder: Embedder
    items: Index
    skills: Index
    catalog: Catalog
    strategy: Strategy
    _requests: dict[str, Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._memory = PointMemory(self.items)
        self._matching = SkillMatching(self.skills, self.items, self._memory)

    def prepare(self, texts: Sequence[str]) -> None:
        self._requests.update((text, read_request(ToolQuery(text).text)) for text in texts)

    async def run(self, text: str) -> BareAnswer:
        request = self._requests[text]
        stages = Stages()
        worded = (
            None
            if self.strategy is Strategy.DIRECT
            else asyncio.ensure_future(self._matching.by_words(request, ()))
        )
        vectors = request.vectors(np.array(await asyncio.gather(*map(self.embedder.embed_query, request.texts))))
        stages.end("embedding")
        if worded is None:
            found = await self._search(request, vectors)
        else:
            found = await self._by_skills(request, vectors, worded, stages)
        best = _best(found)
        await self._memory.read(best)
        stages.end("index")
        ids = list(best)[:RETURNED]
        await asyncio.gather(self._memory.read({id_: best[id_] for id_ in ids}), self.catalog.schemas(ids))
        stages.end("details")
        return BareAnswer(ids, stages.spent)

    async def _by_skills(
        self, request: Request, vectors: Sequence[Vector], worded: "asyncio.Future[SkillsOfItems]", stages: Stages
    ) -> Found:
        is_hybrid = self.strategy is Strategy.HYBRID
        direct = asyncio.ensure_future(self._search(request, vectors)) if is_hybrid else None
        matched = await self._matching.match(vectors[0], await worded, SKILL_LIMIT, USUAL.skill)
        skills = [skill.id for skill in matched]
        stages.end("skills")
        routed = await self._search(request, vectors, where_of(None, skills)) if skills or not is_hybrid else ()
        return [*(await direct if direct else ()), *routed]

    async def _search(self, request: Request, vectors: Sequence[Vector], where: Where = ()) -> Found:
        parts = zip(vectors, request.parts, strict=True)
        asks = [Ask(vector, part.terms, where, CANDIDATES_PER_ARM) for vector, part in parts]
        return await self.items.search_all(asks)


def _best(found: Found) -> Revisions:
    """Any would do: what the engine does for them is the same."""
    best: dict[int, int] = {}
    for one in found:
        for arm in (one.dense, one.words):
            best.update(revisions_of(arm or ()))
            if len(best) >= LOOKED_AT:
                return dict(list(best.items())[:LOOKED_AT])
    return best
