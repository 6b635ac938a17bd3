"""What is measured of a collection of many tenants: everything in turn, for times are noisy."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from toolscript.adapters import qdrant
from toolscript.errors import SetupError
from toolscript.evaluation.document_questions import (
    BY_SIZE,
    FILTERS,
    PLAIN,
    SHAPES,
    UNIFORMLY,
    Question,
    Shape,
    classes_of,
    draws,
    question_for,
)
from toolscript.evaluation.documents_at_scale import InTurn, Recalls, Row, StageTimes
from toolscript.evaluation.many_documents import Originals, TenantSize
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.passages import passage_query_terms
from toolscript.model.progress import OnProgress, Progress
from toolscript.model.queries import SearchType
from toolscript.model.tenancy import Caller
from toolscript.ports import Embedder
from toolscript.search.documents.search import DocumentSearch
from toolscript.service.bare_documents import BareDocuments, BareQuestion
from toolscript.service.bench_documents_points import BenchDocuments

RETURNED = 10
WARM_UP = 20
# Of classes whose tenants are large enough for a graph.
WITH_GRAPHS = ("big", "biggest")
KEYWORD = Shape(SearchType.KEYWORD)


class DocumentBench:
    def __init__(
        self,
        connected: qdrant.Qdrant,
        embedder: Embedder,
        originals: Originals,
        many: BenchDocuments,
        count: int,
        seed: int,
        on_progress: OnProgress,
    ) -> None:
        self._embedder, self._originals, self._many = embedder, originals, many
        self._bare = BareDocuments(connected, many.index.collection, embedder)
        self._count, self._seed = count, seed
        self._chance = np.random.default_rng([seed, 9])
        self._on_progress = on_progress

    async def tables(
        self, sizes: Sequence[TenantSize], alone: BenchDocuments, few: Sequence[TenantSize]
    ) -> dict[str, list[Row]]:
        await self.warm_up(sizes)
        return {
            "against the bare engine": await self.against_bare(draws(sizes, self._count, self._chance)),
            "stages of a hybrid search, p50 ms": await self._stages(sizes),
            "first search of a tenant against a later one": await self._first_searches(sizes),
            "the same tenants beside all others against alone": await self.beside_others(alone, few),
            "recall of the dense arm": await self._recalls(sizes),
        }

    async def warm_up(self, sizes: Sequence[TenantSize]) -> None:
        search = self._search()
        for size in draws(sizes, WARM_UP, self._chance)[BY_SIZE]:
            question = self._question(size)
            await _asked(search, question, PLAIN)
            await self._bare.run(await self._bare_question(question, PLAIN))

    async def against_bare(self, drawn: Mapping[str, Sequence[TenantSize]]) -> list[Row]:
        """Tenants of a class are known to the search, as those are who search; any tenant is not."""
        times = InTurn(("tenants", "search"), ("ours", "bare"))
        search = self._search()
        shapes = {name: (PLAIN,) if name in (UNIFORMLY, BY_SIZE) else SHAPES for name in drawn}
        for name, listed in drawn.items():
            for shape in shapes[name]:
                for size in listed:
                    question = self._question(size)
                    bare = partial(self._bare.run, await self._bare_question(question, shape))
                    if name != UNIFORMLY:
                        await _asked(search, question, KEYWORD)
                    await times.ask((name, str(shape)), partial(_asked, search, question, shape), bare)
                self._progress("compare", len(times.spent), sum(map(len, shapes.values())))
        return times.rows()

    async def _stages(self, sizes: Sequence[TenantSize]) -> list[Row]:
        rows: list[Row] = []
        for name, listed in classes_of(sizes).items():
            stages = StageTimes()
            search = self._search(stages)
            for size in self._some(listed):
                await _asked(search, self._question(size), PLAIN)
            rows.append({"tenants": name, **stages.row()})
        return rows

    async def _first_searches(self, sizes: Sequence[TenantSize]) -> list[Row]:
        """Whoever searches for the first time in a process waits until its words are known."""
        times = InTurn(("tenants",), ("first", "later"))
        later = self._search()
        for name, listed in classes_of(sizes).items():
            for size in self._some(listed):
                question = self._question(size)
                await _asked(later, question, KEYWORD)
                first = partial(_asked, self._search(), question, PLAIN)
                await times.ask((name,), first, partial(_asked, later, question, PLAIN))
            self._progress("first searches", len(times.spent), len(classes_of(sizes)))
        return times.rows()

    async def beside_others(
        self, alone: BenchDocuments, few: Sequence[TenantSize], shapes: Sequence[Shape] = SHAPES
    ) -> list[Row]:
        times = InTurn(("search",), ("beside", "alone"))
        beside_others, by_themselves = self._search(), self._search(of=alone)
        for shape in shapes:
            for size in self._some(few):
                question = self._question(size)
                for search in (beside_others, by_themselves):
                    await _asked(search, question, KEYWORD)
                await times.ask(
                    (str(shape),),
                    partial(_asked, beside_others, question, shape),
                    partial(_asked, by_themselves, question, shape),
                )
            self._progress("beside others", len(times.spent), len(shapes))
        return times.rows()

    async def _recalls(self, sizes: Sequence[TenantSize]) -> list[Row]:
        recalls = Recalls(("tenants", "filter"))
        classes = [(name, listed) for name, listed in classes_of(sizes).items() if name in WITH_GRAPHS]
        for name, listed in classes:
            for filtered, filters in FILTERS.items():
                for size in self._some(listed):
                    vector = await self._embedder.embed_query(self._question(size).text)
                    documents = self._many.index.of(size.tenant)
                    await recalls.ask((name, filtered or "none"), documents, vector, filters)
                self._progress("recall", len(recalls.shares), len(classes) * len(FILTERS))
        return recalls.rows()

    def _search(self, stages: StageTimes | None = None, of: BenchDocuments | None = None) -> DocumentSearch:
        index = (of or self._many).index
        return DocumentSearch(self._embedder, index, spans=stages or StageTimes(), cursor_secret=b"bench")

    def _some(self, listed: Sequence[TenantSize]) -> list[TenantSize]:
        return [listed[at] for at in self._chance.integers(len(listed), size=self._count)]

    def _question(self, size: TenantSize) -> Question:
        return question_for(self._originals, size, self._seed, self._chance)

    async def _bare_question(self, question: Question, shape: Shape) -> BareQuestion:
        statistics = await self._many.index.of(question.size.tenant).statistics()
        terms = {term: statistics.rarity(term) for term in passage_query_terms(question.text)}
        return BareQuestion.of(question.size.tenant, question.text, terms, shape.search_type, shape.filters)

    def _progress(self, task: str, done: int, total: int) -> None:
        self._on_progress(Progress(task, done, total))


async def _asked(search: DocumentSearch, question: Question, shape: Shape) -> None:
    query = DocumentQuery(
        question.text, top_k=RETURNED, search_type=shape.search_type, filters=shape.filters, include_snippets=True
    )
    answer = await search.search(Caller(question.size.tenant), query)
    if answer.degraded:
        raise SetupError(
            f"a search was degraded, without {', '.join(answer.degraded)}: its times are no measure",
            hint="measure when nothing else does",
        )
