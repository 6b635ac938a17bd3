"""The write path on doubles, with a manual clock."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable
from toolscript.core.item_text import embedded_text
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, valid_assignments
from toolscript.core.retrieval.model import IndexCard, IndexQuery, Matrix
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.taxonomy import Classification, Skill, SuggestedSkill, Unclassified
from toolscript.core.values import OnProgress, silent
from toolscript.testing import (
    HashEmbedder,
    MemoryAssignments,
    MemoryCatalog,
    MemoryDirtySet,
    MemoryIndexes,
    MemorySkillVectors,
    MemorySuggestions,
    MemoryTaxonomy,
)
from toolscript.tools.indexing.doctor import Doctor
from toolscript.tools.indexing.indexer import Indexer, ItemSkills, Step
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.indexing.versions import IndexPair, Opened, open_for_writing
from toolscript.tools.indexing.wakeup import Wakeup
from toolscript.tools.indexing.worker import Worker, WorkReport
from toolscript.tools.ports import Classifier

POISON = "poison"


class PickyEmbedder(HashEmbedder):
    """Rejects every batch with a poisonous text; fails while it is `down`.

    `texts` counts how often each was embedded.
    """

    down = False
    gate: asyncio.Event | None = None

    def __init__(self, name: str = "hash") -> None:
        super().__init__(name)
        self.was_called = asyncio.Event()
        self.texts: Counter[str] = Counter()

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        self.was_called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise EmbedderUnavailable("the embedder is down")
        if any(POISON in text for text in texts):
            raise EmbedderRejected("it is poisonous")
        self.texts.update(texts)
        return await super().embed_texts(texts)


def times_embedded(embedder: PickyEmbedder, items: Sequence[Item]) -> list[int]:
    return [embedder.texts[embedded_text(item)] for item in items]


def tool(name: str, description: str = "") -> Item:
    return Item(name, ItemKind.TOOL, "server", name, description)


def tools(count: int) -> list[Item]:
    return [tool(f"tool_{number}") for number in range(count)]


class KeywordClassifier:
    """Assigns an item to each skill with a keyword in its description, else suggests the description."""

    def __init__(self) -> None:
        self.classified: list[str] = []

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        self.classified += [unclassified.item.name for unclassified in items]
        return [self._classify(unclassified.item, skills) for unclassified in items]

    def _classify(self, item: Item, skills: Sequence[Skill]) -> Classification:
        assignments = [
            Assignment(skill.id, 0.8, AssignedBy.RULES)
            for skill in skills
            if any(word in item.description for word in skill.keywords)
        ]
        missing = SuggestedSkill(item.description) if item.description and not assignments else None
        return Classification(valid_assignments(assignments, frozenset(skill.id for skill in skills)), missing)


@dataclass
class Scene:
    time: float = 0.0
    embedder: PickyEmbedder = field(default_factory=PickyEmbedder)
    steps: list[Step] = field(default_factory=list)
    at_step: Callable[[Step], None] = lambda _: None

    def __post_init__(self) -> None:
        self.dirty = MemoryDirtySet(lambda: self.time)
        self.catalog = MemoryCatalog(self.dirty)
        self.taxonomy = MemoryTaxonomy(self.catalog)
        self.suggestions = MemorySuggestions(self.catalog, self.taxonomy)
        self.assignments = MemoryAssignments(self.catalog, self.taxonomy, self.suggestions)
        self.skill_vectors = MemorySkillVectors(self.dirty, self.taxonomy.skills)
        self.indexes = IndexPair(MemoryIndexes(), MemoryIndexes(), self.skill_vectors)
        self.classifier: Classifier = KeywordClassifier()

    @property
    def card(self) -> IndexCard:
        return IndexCard(self.embedder.model)

    async def open(self) -> Opened:
        return await open_for_writing(self.indexes, self.dirty, self.card)

    async def index(self) -> Index:
        return (await self.open()).index

    async def indexer(
        self, batch: int = 100, opened: Opened | None = None, embedder: Embedder | None = None
    ) -> Indexer:
        def seen(step: Step) -> None:
            self.steps.append(step)
            self.at_step(step)

        opened = opened or await self.open()
        return Indexer(
            self.catalog,
            self.dirty,
            self.skill_vectors,
            ItemSkills(self.taxonomy, self.assignments, self.classifier),
            embedder or self.embedder,
            opened.index,
            opened.index_version.id,
            batch=batch,
            lease_seconds=2.5,
            at_step=seen,
        )

    async def worker(
        self,
        batch: int = 100,
        opened: Opened | None = None,
        embedder: Embedder | None = None,
        on_progress: OnProgress = silent,
        wakeup: Wakeup | None = None,
    ) -> Worker:
        opened = opened or await self.open()
        indexer = await self.indexer(batch, opened, embedder)
        index_version = opened.index_version.id
        points = SkillPoints(self.skill_vectors, embedder or self.embedder, opened.skills, index_version)
        return Worker(
            indexer, points, self.suggestions, self.dirty, index_version, on_progress=on_progress, wakeup=wakeup
        )

    async def drain(self, batch: int = 100) -> WorkReport:
        return await (await self.worker(batch)).drain(patience_seconds=0)

    async def doctor(self) -> Doctor:
        return Doctor(self.catalog, self.dirty, self.skill_vectors, await self.open())

    async def indexed_names(self) -> set[object]:
        ask = IndexQuery(vector=await self.embedder.embed_query("anything"), limit=1000)
        index = await self.index()
        ids = [hit.id for hit in (await index.search(ask)).dense or ()]
        return {fields["name"] for fields in (await index.fields(ids)).values()}
