"""Keeps the index of a gateway equal to what its servers offer. Nothing here makes a search wait."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from toolscript.core.embedding.items import ItemVectors, vector_hash
from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer, ServerSpec, ServerStatus, ToolServers
from toolscript.core.retrieval.deadline import run_on_daemon_thread
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.index import Analysed, LocalIndex, analyse
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.store.embeddings import AnalysisFile, EmbeddingFile
from toolscript.gateway.store.offers import OfferFile, ToolChange

BATCH = 64
SHOW_EVERY = 512
EMBEDDING = "the tools are still being embedded"
NO_ANSWER = "it did not answer"
FAILED_BEFORE_SECONDS = 3.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexFiles:
    """What a second start need not do again. Each is written when it differs from what was written before."""

    folder: Path
    servers: Sequence[str]
    offers: OfferFile
    words: AnalysisFile

    @classmethod
    def of(cls, folder: Path, specs: Sequence[ServerSpec]) -> "IndexFiles":
        names = [spec.name for spec in specs]
        return cls(folder, names, OfferFile(folder / "tools", specs), AnalysisFile(folder / "words", names))

    def embeddings(self, embedder: Embedder) -> EmbeddingFile:
        return EmbeddingFile(self.folder / "embeddings", self.servers, IndexCard(embedder.model))

    def remember(
        self, offers: Sequence[Offer], failed: Mapping[str, str], analysed: Mapping[str, Analysed]
    ) -> bool:
        self.words.remember(analysed)
        return self.offers.remember(offers, failed)


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
        self._remembered: dict[str, Offer] = {}
        self._analysed: dict[str, Analysed] = {}
        self._embedder: Embedder | None = None
        self._vectors: ItemVectors | None = None
        self._files: IndexFiles | None = None
        self._due = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._begun = asyncio.Event()
        self._model_decided = asyncio.Event()
        self._ends = False
        self._not_waited_for: frozenset[str] = frozenset()
        self._changes: Sequence[ToolChange] = ()
        self.specs: Sequence[ServerSpec] = ()
        self.model_error: ToolscriptError | None = None
        self.embedded = 0
        self._ready = asyncio.Event()

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None:
        """These servers from now on; until one has answered for the first time, what is remembered of it."""
        self.specs = specs
        self._remembered = {offer.server: offer for offer in cached}
        self._files = IndexFiles.of(self._cache, specs) if self._cache else None
        self._changes = self._files.offers.changes() if self._files else []
        self._open_vectors()
        self._mark_due()

    def changes(self) -> Sequence[ToolChange]:
        """Tools of which their servers say something else than before, in the last days."""
        return self._changes

    @property
    def ready(self) -> bool:
        """Whether there is something to search, or nothing to wait for."""
        return self._ready.is_set()

    async def until_ready(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), seconds)
        return self.ready

    async def until_embedded(self, seconds: float) -> None:
        """Waits until the model has embedded what there is, or cannot be loaded; no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._model_decided.wait()
                await self._caught_up.wait()

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

    async def settled(self, patience: float = math.inf, not_for: Collection[str] = ()) -> None:
        """Waits until every server has answered or failed, the model has come or not, and all of it is indexed.

        Once one server has answered, the others have `patience` seconds more. Those of `not_for`, which failed a
        short while ago, have a few seconds in all: long enough for one that was mended.
        """
        await self._servers_settled(patience, not_for)
        await self._model_decided.wait()
        self._ends, self._not_waited_for = True, frozenset(not_for)
        self._mark_due()
        await self._caught_up.wait()

    async def _servers_settled(self, patience: float, not_for: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        revision, ends_at, failed_until = -1, math.inf, loop.time() + FAILED_BEFORE_SECONDS
        while self._waits_for(not_for) or (loop.time() < failed_until and self._waits_for(())):
            if self._remembered or self._servers.offers():
                ends_at = min(ends_at, loop.time() + patience)
            until = ends_at if self._waits_for(not_for) else min(ends_at, failed_until)
            try:
                async with asyncio.timeout_at(None if math.isinf(until) else until):
                    revision = await self._servers.changed(revision)
            except TimeoutError:
                return

    def _waits_for(self, not_for: Collection[str]) -> bool:
        states = self._servers.states()
        return any(state.status is ServerStatus.STARTING and state.name not in not_for for state in states)

    async def _follow_servers(self) -> None:
        revision = -1
        while True:
            revision = await self._servers.changed(revision)
            states = self._servers.states()
            settled = sum(state.status is not ServerStatus.STARTING for state in states)
            if states:
                self._on_progress(Progress("starting servers", settled, len(states)))
            self._mark_due()

    async def _load_model(self) -> None:
        try:
            self._embedder = await run_on_daemon_thread(self._load_embedder) if self._load_embedder else None
        except ToolscriptError as error:
            self.model_error = error
            self._search.why_words_alone = f"{error.message}" + (f" ({error.hint})" if error.hint else "")
            # What the answer says is not said a second time, unless it is news.
            level = logging.INFO if error.details.get("remembered") else logging.WARNING
            logger.log(level, "search by words alone", extra={"part": "model", "reason": error.message})
        if self._load_embedder is None:
            self._search.why_words_alone = ""
        if self._embedder is not None:
            self._search.embedder = self._embedder
            self._search.why_words_alone = EMBEDDING
            self._open_vectors()
            self._mark_due()
        self._model_decided.set()

    def _open_vectors(self) -> None:
        if self._embedder is None:
            return
        memory = self._files.embeddings(self._embedder) if self._files else None
        known = self._vectors.known if self._vectors is not None else {}
        self._vectors = ItemVectors(self._embedder, memory, known)

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
        # One look: a server that is started meanwhile has not failed.
        failures, ends = self._failures(), self._ends
        states = {state.name: state.status for state in self._servers.states()}
        all_said = ServerStatus.STARTING not in states.values()
        offers = self._current_offers(states)
        items = [item for offer in offers for item in offer.items]
        # The model and the config may change while the index is built: the next round follows.
        vectors, files = self._vectors, self._files
        index, hashes = await asyncio.to_thread(self._build, items, vectors, files)
        self._search.index = index
        if all_said or items:
            self._ready.set()
        # Whoever waits no longer keeps what is known: one server that hangs must not cost the others their memory.
        if (all_said or ends) and files is not None:
            kept = self._servers.offers(), failures, dict(self._analysed)
            is_new = await asyncio.to_thread(files.remember, *kept)
            self._changes = await asyncio.to_thread(files.offers.changes) if is_new else self._changes
        if vectors is not None:
            absent = {spec.name for spec in self.specs} - {offer.server for offer in self._servers.offers()}
            await self._embed(vectors, index, hashes, absent)

    def _failures(self) -> dict[str, str]:
        """Of servers that have failed; also of those that have not answered, once nobody waits any more."""
        states = self._servers.states()
        failed = {state.name: state.error for state in states if state.status is ServerStatus.FAILED}
        mute = [state.name for state in states if state.status is ServerStatus.STARTING] if self._ends else []
        # Who was not waited for may have needed a moment more: what is known of it stays.
        return {**failed, **dict.fromkeys((name for name in mute if name not in self._not_waited_for), NO_ANSWER)}

    def _current_offers(self, states: Mapping[str, ServerStatus]) -> list[Offer]:
        """What the servers offer, and what is remembered of those that have not answered for the first time."""
        offers = {offer.server: offer for offer in self._servers.offers()}
        for name in [*self._remembered]:
            if states.get(name, ServerStatus.STARTING) is ServerStatus.STARTING and name not in offers:
                offers[name] = self._remembered[name]
            else:
                del self._remembered[name]
        return [offers[name] for name in sorted(offers)]

    def _build(
        self, items: Sequence[Item], vectors: ItemVectors | None, files: IndexFiles | None
    ) -> tuple[LocalIndex, list[str]]:
        """Runs on a thread. Only items that are new or changed are taken apart."""
        known = self._analysed or (files.words.recall() if files else {})
        self._analysed = {item.fingerprint: known.get(item.fingerprint) or analyse(item) for item in items}
        analysed = [self._analysed[item.fingerprint] for item in items]
        if vectors is None:
            return LocalIndex(items, analysed).warm(), []
        hashes = [vector_hash(item) for item in items]
        vectors.recall(hashes)
        return LocalIndex(items, analysed, vectors.matrix(hashes)).warm(), hashes

    async def _embed(
        self, vectors: ItemVectors, index: LocalIndex, hashes: list[str], absent: Collection[str]
    ) -> None:
        """A batch at a time; a change that comes meanwhile goes first, and the rest goes on from there."""
        missing = vectors.missing(index.items, hashes)
        left = iter(missing.items())
        done, failure = 0, ""
        while batch := dict(islice(left, BATCH)):
            self._search.why_words_alone = f"{EMBEDDING} ({done} of {len(missing)} done)"
            failure = await self._embed_what_can_be(vectors, batch) or failure
            if self._due.is_set():
                return
            done += len(batch)
            self._on_progress(Progress("embedding tools", done, len(missing)))
            if done % SHOW_EVERY == 0 or done == len(missing):
                self._search.index = await asyncio.to_thread(lambda: index.with_vectors(vectors.matrix(hashes)))
        self._search.why_words_alone = failure
        await asyncio.to_thread(vectors.keep, index.items, hashes, absent)

    async def _embed_what_can_be(self, vectors: ItemVectors, batch: Mapping[str, Item]) -> str:
        """One item that cannot be embedded does not take the others with it. Answers why one could not be."""
        try:
            await vectors.embed(batch)
            self.embedded += len(batch)
            return ""
        except ToolscriptError as error:
            if len(batch) == 1:
                reason = {"part": "model", "reason": error.message}
                logger.warning("a tool is found by words alone: %s", next(iter(batch.values())).name, extra=reason)
                return error.message
            each = [await self._embed_what_can_be(vectors, {key: item}) for key, item in batch.items()]
            return next(filter(None, each), "")
