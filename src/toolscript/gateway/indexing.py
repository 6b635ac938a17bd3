"""Keeps the index of a gateway equal to what its servers offer. Nothing here makes a search wait."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from toolscript.adapters.gateway_files import AnalysisFile, EmbeddingFile, OfferFile
from toolscript.errors import ToolscriptError
from toolscript.model.items import Item
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress
from toolscript.model.servers import Offer, ServerSpec, ServerStatus
from toolscript.ports import Embedder, ToolServers
from toolscript.search.local import Analysed, LocalIndex, LocalSearch, analyse
from toolscript.sync.item_vectors import ItemVectors, vector_hash

BATCH = 64
KEEP_EVERY = 1_024

logger = logging.getLogger(__name__)


class Indexing:
    """Two things happen by themselves, servers change and the model arrives; the index follows both.

    `cache` is the folder for what a second start need not do again; None: nothing is kept. Without
    `load_embedder` nothing is embedded, for commands that do not search.
    """

    def __init__(
        self,
        servers: ToolServers,
        search: LocalSearch,
        *,
        load_embedder: Callable[[], Embedder] | None,
        cache: Path | None,
        on_progress: OnProgress,
    ) -> None:
        self._servers = servers
        self._search = search
        self._load_embedder = load_embedder
        self._cache = cache
        self._on_progress = on_progress
        self.specs: Sequence[ServerSpec] = ()
        self._remembered: dict[str, Offer] = {}
        self._kept: tuple[list[Offer], dict[str, str]] = ([], {})
        self._analysed: dict[str, Analysed] = {}
        self._embedder: Embedder | None = None
        self._vectors: ItemVectors | None = None
        self._due = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._begun = asyncio.Event()
        self._model_decided = asyncio.Event()
        self.model_error: ToolscriptError | None = None
        self.embedded = 0
        self._unkept = False
        self._in_file: frozenset[str] | None = None
        self._words_changed = False
        self.ready = False

    def use(self, specs: Sequence[ServerSpec], remembered: Sequence[Offer] = ()) -> None:
        """These servers from now on; until one has answered for the first time, what is remembered of it."""
        self.specs = specs
        self._remembered = {offer.server: offer for offer in remembered}
        self._open_vectors()
        self._mark_due()

    @property
    def remembers(self) -> bool:
        return bool(self._remembered)

    async def run(self) -> None:
        """What is remembered comes before anything else is loaded: that takes seconds."""
        if self._remembered:
            await self._index()
        self._begun.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_servers())
            tasks.create_task(self._load_model())
            tasks.create_task(self._keep_up())

    async def has_begun(self) -> None:
        """Waits until what is remembered can be found: then the very first search has an answer."""
        await self._begun.wait()

    async def model_is_decided(self) -> None:
        """Waits until the model has been loaded, or cannot be."""
        await self._model_decided.wait()

    async def settled(self, *, servers: bool = True) -> None:
        """Waits until every server has answered or failed, the model has come or not, and all of it is indexed."""
        revision = -1
        while servers and any(state.status is ServerStatus.STARTING for state in self._servers.states()):
            revision = await self._servers.changed(revision)
        await self._model_decided.wait()
        self._mark_due()
        await self._caught_up.wait()

    async def _follow_servers(self) -> None:
        revision = -1
        while True:
            revision = await self._servers.changed(revision)
            states = self._servers.states()
            settled = sum(state.status is not ServerStatus.STARTING for state in states)
            self._on_progress(Progress("servers that have answered", settled, len(states)))
            self._mark_due()

    async def _load_model(self) -> None:
        try:
            self._embedder = await asyncio.to_thread(self._load_embedder) if self._load_embedder else None
        except ToolscriptError as error:
            self.model_error = error
            self._search.why_words_alone = f"{error.message}" + (f" ({error.hint})" if error.hint else "")
            logger.warning("search by words alone", extra={"part": "model", "reason": error.message})
        if self._embedder is not None:
            self._search.embedder = self._embedder
            self._search.why_words_alone = ""
            self._open_vectors()
            self._mark_due()
        self._model_decided.set()

    def _open_vectors(self) -> None:
        if self._embedder is None:
            return
        names = [spec.name for spec in self.specs]
        card = IndexCard(self._embedder.model)
        memory = EmbeddingFile(self._cache / "embeddings", names, card) if self._cache else None
        known = self._vectors.known if self._vectors is not None else {}
        self._vectors = ItemVectors(self._embedder, memory, known)
        self._in_file = None

    def _mark_due(self) -> None:
        self._caught_up.clear()
        self._due.set()

    async def _keep_up(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await self._index()
            if not self._due.is_set():
                self._caught_up.set()

    async def _index(self) -> None:
        states = {state.name: state.status for state in self._servers.states()}
        all_said = ServerStatus.STARTING not in states.values()
        items = [item for offer in self._current_offers(states) for item in offer.items]
        # The model may come while the index is built: this round has none then, and the next one does.
        vectors = self._vectors
        index, hashes = await asyncio.to_thread(self._build, items, vectors)
        self._search.index = index
        self.ready = self.ready or all_said or bool(items)
        if all_said:
            await self._remember()
        if vectors is not None:
            await self._embed(vectors, index, hashes)

    def _current_offers(self, states: Mapping[str, ServerStatus]) -> list[Offer]:
        """What the servers offer, and what is remembered of those that have not answered for the first time."""
        offers = {offer.server: offer for offer in self._servers.offers()}
        for name in [*self._remembered]:
            if states.get(name, ServerStatus.STARTING) is ServerStatus.STARTING and name not in offers:
                offers[name] = self._remembered[name]
            else:
                del self._remembered[name]
        return [offers[name] for name in sorted(offers)]

    async def _remember(self) -> None:
        states = self._servers.states()
        failures = {one.name: one.error for one in states if one.status is ServerStatus.FAILED}
        news = (list(self._servers.offers()), failures)
        if self._cache is not None and news != self._kept and any(news):
            await asyncio.to_thread(OfferFile(self._cache / "tools", self.specs).remember, *news)
            self._kept = news
        if self._cache is not None and self._words_changed:
            self._words_changed = False
            await asyncio.to_thread(self._analysis_file(self._cache).remember, dict(self._analysed))

    def _analysis_file(self, cache: Path) -> AnalysisFile:
        return AnalysisFile(cache / "words", [spec.name for spec in self.specs])

    def _build(self, items: Sequence[Item], vectors: ItemVectors | None) -> tuple[LocalIndex, list[str]]:
        """Runs on a thread. Only items that are new or changed are taken apart."""
        if not self._analysed and self._cache:
            self._analysed = self._analysis_file(self._cache).recall()
        known = self._analysed
        self._analysed = {item.fingerprint: known.get(item.fingerprint) or analyse(item) for item in items}
        self._words_changed = self._words_changed or not self._analysed.keys() <= known.keys()
        analysed = [self._analysed[item.fingerprint] for item in items]
        if vectors is None:
            return LocalIndex(items, analysed).warm(), []
        hashes = [vector_hash(item) for item in items]
        vectors.recall(hashes)
        return LocalIndex(items, analysed, vectors.matrix(hashes)).warm(), hashes

    async def _embed(self, vectors: ItemVectors, index: LocalIndex, hashes: list[str]) -> None:
        """A batch at a time; a change that comes meanwhile goes first, and the rest goes on from there."""
        missing = vectors.missing(index.items, hashes)
        left = iter(missing.items())
        done = 0
        while batch := dict(islice(left, BATCH)):
            if not await self._try_to_embed(vectors, batch) or self._due.is_set():
                break
            done += len(batch)
            self._on_progress(Progress("embedding tools", done, len(missing)))
            if done % KEEP_EVERY == 0:
                await asyncio.to_thread(vectors.keep, index.items, hashes)
        # What a round embedded that was cut short is kept by the next one, which may find nothing missing. And a
        # file that was written when only some servers had answered lacks the others, known as their vectors are.
        grown = self._in_file is not None and not self._in_file.issuperset(hashes)
        if (self._unkept or grown) and not self._due.is_set():
            self._search.index = index.with_vectors(vectors.matrix(hashes)).warm()
            await asyncio.to_thread(vectors.keep, index.items, hashes)
            self._unkept, self._in_file = False, frozenset(hashes)

    async def _try_to_embed(self, vectors: ItemVectors, batch: dict[str, Item]) -> bool:
        try:
            await vectors.embed(batch)
        except ToolscriptError as error:
            self._search.why_words_alone = error.message
            logger.warning("tools without a vector", extra={"part": "model", "reason": error.message})
            return False
        self._search.why_words_alone = ""
        self.embedded += len(batch)
        self._unkept = True
        return True
