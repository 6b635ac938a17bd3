"""Keeps the index of a gateway in sync with the items its servers offer, without blocking searches."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.embedding.items import ItemVectors, vector_hash
from toolscript.core.embedding.scale import scale_of
from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer, ServerSpec, ServerStatus, ToolServers
from toolscript.core.retrieval.deadline import run_on_daemon_thread
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.approvals import Decision, Review
from toolscript.gateway.index import Analysed, LocalIndex, analyse
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.store.approvals import ApprovalStore
from toolscript.gateway.store.embeddings import AnalysisFile, EmbeddingFile
from toolscript.gateway.store.offers import OfferFile

BATCH = 64
SHOW_EVERY = 512
EMBEDDING = "the tools are still being embedded"
NO_ANSWER = "it did not answer"
BUILTIN_SEARCH, KEYWORD_SEARCH = "search with the built-in model", "keyword search only"
FAILED_BEFORE_SECONDS = 3.0
# How long a gateway that starts waits for its cached offers to be indexed.
CACHED_SECONDS = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexFiles:
    """Cache files that save work at the next start. Each is written only when it changed."""

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
    ) -> None:
        self.words.remember(analysed)
        self.offers.remember(offers, failed)


def _servers_of(offers: Sequence[Offer]) -> set[str]:
    return {offer.server for offer in offers}


@dataclass
class _Model:
    """An embedder, the vectors that it made of the items, and what its cosines mean, once that is known."""

    embedder: Embedder
    vectors: ItemVectors
    scale: CosineScale | None = None


@dataclass(frozen=True, eq=False)
class _Complete:
    """What the index was built from when it was complete."""

    items: list[Item]
    model: _Model | None
    fallback: _Model | None
    files: IndexFiles | None

    def still_holds(
        self, items: list[Item], model: _Model | None, fallback: _Model | None, files: IndexFiles | None
    ) -> bool:
        same_parts = self.model is model and self.fallback is fallback and self.files is files
        return same_parts and self.items == items


class _Rounds:
    """The rounds of indexing; `offers` are those that the last one made the index of."""

    def __init__(self) -> None:
        self.offers: Sequence[Offer] = ()
        self._ended = asyncio.Event()

    def end(self, offers: Sequence[Offer]) -> None:
        self.offers = offers
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()

    async def next(self) -> None:
        await self._ended.wait()


class Indexing:
    """Updates the index when servers change and when the model is loaded.

    `cache` is the folder of the cache files; None: no cache. Without `load_embedder` nothing is embedded, for
    commands that do not search. What `approvals` holds is not indexed. `load_fallback` loads the embedder that is
    used where the model cannot be loaded; with `fallback_first` also until the model is loaded and has embedded
    every item.
    """

    # Until the config was read there is nothing to wait for, and nothing to search.
    _is_used = False

    def __init__(
        self,
        servers: ToolServers,
        search: LocalSearch,
        *,
        load_embedder: Callable[[], Embedder] | None,
        cache: Path | None,
        on_progress: OnProgress,
        approvals: ApprovalStore | None = None,
        load_fallback: Callable[[], Embedder] | None = None,
        fallback_first: bool = False,
    ) -> None:
        self._servers = servers
        self._search = search
        self._load_embedder = load_embedder
        self._load_fallback = load_fallback
        self._fallback_first = fallback_first
        self._cache = cache
        self._on_progress = on_progress
        self._cached: dict[str, Offer] = {}
        self._given: Mapping[str, Offer] = {}
        self._complete: _Complete | None = None
        self._analysed: dict[str, Analysed] = {}
        self._model: _Model | None = None
        self._fallback: _Model | None = None
        self._files: IndexFiles | None = None
        self._due = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._started = asyncio.Event()
        self._model_decided = asyncio.Event()
        self._wait_is_over = False
        self._not_waited_for: frozenset[str] = frozenset()
        self.approvals = approvals
        self._reviews: Sequence[Review] = ()
        self.specs: Sequence[ServerSpec] = ()
        self.model_error: ToolscriptError | None = None
        self.embedded = 0
        self._ready = asyncio.Event()
        self._rounds = _Rounds()
        self._revision, self._shown = 0, asyncio.Event()

    async def indexed(self, after: int) -> int:
        """Wait until the index is newer than revision `after`; return the current revision."""
        while self._revision <= after:
            await self._shown.wait()
        return self._revision

    def spec_named(self, name: str) -> ServerSpec | None:
        return next((spec for spec in self.specs if spec.name == name), None)

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None:
        """Use these servers from now on; until a server has answered, use its cached offer."""
        self.specs, self._is_used = specs, True
        self._cached = {offer.server: offer for offer in cached}
        self._given = dict(self._cached)
        self._files = IndexFiles.of(self._cache, specs) if self._cache else None
        if self.approvals is not None:
            self.approvals.use(specs)
        self._open_vectors()
        self._mark_due()

    def reviews(self) -> Sequence[Review]:
        """Return what the servers offer and nobody has approved."""
        return self._reviews

    async def decide(self, decision: Decision, digests: Collection[str]) -> Sequence[Review]:
        """Decide about definitions, and index what is no longer held."""
        if self.approvals is None:
            return ()
        decided = await asyncio.to_thread(self.approvals.decide, decision, digests, self.offers())
        self._mark_due()
        return decided

    @property
    def ready(self) -> bool:
        """Whether there are items to search, or no server is still starting."""
        return self._ready.is_set()

    async def until_ready(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), seconds)
        return self.ready

    async def until_listed(self, seconds: float) -> None:
        """Wait until every server has answered or failed and its items are searched, at most this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._is_listed():
                    await self._rounds.next()

    def _is_listed(self) -> bool:
        settled = {state.name for state in self._servers.states() if state.status is not ServerStatus.STARTING}
        absent = {spec.name for spec in self.specs} - settled - self._cached.keys()
        return self.ready and not absent and self._rounds.offers == self.offers()

    async def until_searched(self, seconds: float) -> None:
        """Wait until something of every server that has answered is searched, at most this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not _servers_of(self.offers()) <= _servers_of(self._rounds.offers):
                    await self._rounds.next()

    async def until_embedded(self, seconds: float) -> None:
        """Wait until all items are embedded or the model failed to load, at most this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._model_decided.wait()
                await self._caught_up.wait()

    @property
    def uses_cache(self) -> bool:
        return bool(self._cached)

    async def run(self) -> None:
        """Index cached offers first: loading servers and model takes seconds."""
        if self._fallback_first:
            await self._open_fallback()
        if self._cached:
            await self._index()
        self._started.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_servers())
            tasks.create_task(self._load_model())
            tasks.create_task(self._keep_up())

    async def has_begun(self) -> None:
        """Wait until cached offers are indexed, so that the first search has an answer."""
        await self._started.wait()
        if self._cached:
            await self.until_ready(CACHED_SECONDS)

    async def wait_for_model(self) -> None:
        """Wait until the model is loaded or failed to load."""
        await self._model_decided.wait()

    async def settled(self, patience: float = math.inf, not_for: Collection[str] = ()) -> None:
        """Wait until every server has answered or failed, the model is loaded or not, and all items are indexed.

        Each time a server has answered, the others have `patience` more seconds. Servers in `not_for`, which
        failed a short while ago, have a few seconds in total: enough for a repaired one.
        """
        await self._servers_settled(patience, not_for)
        await self._model_decided.wait()
        self._wait_is_over, self._not_waited_for = True, frozenset(not_for)
        self._mark_due()
        await self._caught_up.wait()

    async def _servers_settled(self, patience: float, not_for: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        revision, ends_at, failed_until = -1, math.inf, loop.time() + FAILED_BEFORE_SECONDS
        answered = -1
        while self._waits_for(not_for) or (loop.time() < failed_until and self._waits_for(())):
            # They start a few at a time: the others have a while longer each time one has answered.
            if (self._cached or self._servers.offers()) and len(self._servers.offers()) > answered:
                ends_at, answered = loop.time() + patience, len(self._servers.offers())
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
            embedder = await run_on_daemon_thread(self._load_embedder) if self._load_embedder else None
        except ToolscriptError as error:
            await self._do_without(error)
        else:
            if embedder is None:
                self._search.model_note = ""
            else:
                self._use_model(embedder)
        self._model_decided.set()

    async def _do_without(self, error: ToolscriptError) -> None:
        """Use the fallback instead of the model; without one, search is sparse."""
        self.model_error = error
        self._search.model_note = f"{error.message}" + (f" ({error.hint})" if error.hint else "")
        await self._open_fallback()
        message = BUILTIN_SEARCH if self._fallback else KEYWORD_SEARCH
        # The answer carries this message, so it is a warning only when it is new.
        level = logging.INFO if error.details.get("remembered") else logging.WARNING
        logger.log(level, message, extra={"part": "model", "reason": error.message})
        self._mark_due()

    def _use_model(self, embedder: Embedder) -> None:
        self._model = _Model(embedder, ItemVectors(embedder, self._embedding_file(embedder)))
        self._search.model_note = EMBEDDING
        if self._fallback is None:
            self._search.embedder = embedder
        self._mark_due()

    async def _open_fallback(self) -> None:
        """Load the fallback. Its vectors are not cached on disk: embedding again takes less time than that."""
        if self._load_fallback is None or self._fallback is not None:
            return
        try:
            embedder = await run_on_daemon_thread(self._load_fallback)
        except ToolscriptError as error:
            logger.warning(KEYWORD_SEARCH, extra={"part": "model", "reason": error.message})
            return
        self._fallback = _Model(embedder, ItemVectors(embedder, None), await scale_of(embedder, self._scales))

    def _open_vectors(self) -> None:
        """Use the cache file of these servers, and the vectors that there are already."""
        if self._model is not None:
            embedder, known = self._model.embedder, self._model.vectors.known
            vectors = ItemVectors(embedder, self._embedding_file(embedder), known)
            self._model = _Model(embedder, vectors, self._model.scale)

    @property
    def _scales(self) -> Path | None:
        return self._cache / "scales.json" if self._cache else None

    def _embedding_file(self, embedder: Embedder) -> EmbeddingFile | None:
        return self._files.embeddings(embedder) if self._files else None

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
        # One snapshot: a server that is started meanwhile has not failed.
        failures, ends = self._failures(), self._wait_is_over
        states = {state.name: state.status for state in self._servers.states()}
        all_answered = self._is_used and ServerStatus.STARTING not in states.values()
        current = self._current_offers(states)
        offers = await self._admitted(current)
        items = [item for offer in offers for item in offer.items]
        # The model and the config may change while the index is built: the next round follows.
        model, fallback, files = self._model, self._fallback, self._files
        is_known = self._complete is not None and self._complete.still_holds(items, model, fallback, files)
        if not is_known:
            # A server that falls asleep or wakes up changes its state and none of its items.
            self._complete = None
            index, hashes = await OF_SERVERS.run(lambda: self._build(items, files))
            await self._show(index, hashes, model, fallback)
            self._revision += 1
            shown, self._shown = self._shown, asyncio.Event()
            shown.set()
        if all_answered or items:
            self._ready.set()
        self._rounds.end(current)
        # Write the cache as soon as no other server answers: one that hangs must not cost the others their cache.
        if (all_answered or ends or not self._due.is_set()) and files is not None:
            await self._write_cache(files, failures)
        if is_known:
            return
        is_embedded = True
        if model is not None:
            absent = {spec.name for spec in self.specs} - {offer.server for offer in self._servers.offers()}
            is_embedded = await self._embed(model, index, hashes, absent)
        if is_embedded:
            self._complete = _Complete(items, model, fallback, files)

    async def _write_cache(self, files: IndexFiles, failures: Mapping[str, str]) -> None:
        """Cache what servers offered. What came from the cache is not written again, as if it were new."""
        offers = [offer for offer in self._servers.offers() if offer is not self._given.get(offer.server)]
        await asyncio.to_thread(files.remember, offers, failures, dict(self._analysed))

    async def _admitted(self, offers: Sequence[Offer]) -> Sequence[Offer]:
        """Return the offers without what is held."""
        if (approvals := self.approvals) is None:
            return offers
        admitted = await OF_SERVERS.run(lambda: approvals.admitted(offers))
        self._reviews = await OF_SERVERS.run(lambda: approvals.reviews(offers))
        return admitted

    def offers(self) -> list[Offer]:
        """Return the servers' offers, and the cached offers of servers that have not answered yet."""
        return self._current_offers({state.name: state.status for state in self._servers.states()})

    async def _show(
        self, index: LocalIndex, hashes: list[str], model: _Model | None, fallback: _Model | None
    ) -> None:
        """Search this index from now on: with the model if it knows every item, else with the fallback."""
        if model is not None:
            await asyncio.to_thread(model.vectors.recall, hashes)
        if model is not None and not (fallback and model.vectors.missing(index.items, hashes)):
            await self._search_with(model, index, hashes)
        elif fallback is not None:
            vectors = fallback.vectors
            await vectors.embed(vectors.missing(index.items, hashes))
            vectors.keep(index.items, hashes)
            await self._search_with(fallback, index, hashes, is_fallback=True)
        else:
            self._search.index = index

    async def _search_with(
        self, model: _Model, index: LocalIndex, hashes: list[str], *, is_fallback: bool = False
    ) -> None:
        with_vectors = await OF_SERVERS.run(lambda: index.with_vectors(model.vectors.matrix(hashes)))
        # All at once: a search must not embed its query with one model and compare vectors of another.
        self._search.embedder, self._search.is_fallback = model.embedder, is_fallback
        self._search.scale = model.scale
        self._search.index = with_vectors

    def _failures(self) -> dict[str, str]:
        """Return the errors of failed servers, and of silent servers once the wait is over."""
        states = self._servers.states()
        failed = {state.name: state.error for state in states if state.status is ServerStatus.FAILED}
        silent = (
            [state.name for state in states if state.status is ServerStatus.STARTING] if self._wait_is_over else []
        )
        # A server that was not waited for may just be slow: keep its cache entry.
        return {
            **failed,
            **dict.fromkeys((name for name in silent if name not in self._not_waited_for), NO_ANSWER),
        }

    def _current_offers(self, states: Mapping[str, ServerStatus]) -> list[Offer]:
        """Return the servers' offers, and the cached offers of servers that have not answered yet."""
        offers = {offer.server: offer for offer in self._servers.offers()}
        for name in [*self._cached]:
            if states.get(name, ServerStatus.STARTING) is ServerStatus.STARTING and name not in offers:
                offers[name] = self._cached[name]
            else:
                del self._cached[name]
        return [offers[name] for name in sorted(offers)]

    def _build(self, items: Sequence[Item], files: IndexFiles | None) -> tuple[LocalIndex, list[str]]:
        """Runs on a thread. Analyses only new and changed items."""
        analyses = self._analysed or (files.words.recall() if files else {})
        self._analysed = {item.fingerprint: analyses.get(item.fingerprint) or analyse(item) for item in items}
        index = LocalIndex(items, [self._analysed[item.fingerprint] for item in items]).warm()
        return index, [vector_hash(item) for item in items] if self._load_embedder else []

    async def _embed(self, model: _Model, index: LocalIndex, hashes: list[str], absent: Collection[str]) -> bool:
        """Embed batch by batch; stop when a change is due, as the next round continues. Return whether all is."""
        vectors = model.vectors
        missing = vectors.missing(index.items, hashes)
        left = iter(missing.items())
        done, failure = 0, ""
        while batch := dict(islice(left, BATCH)):
            self._search.model_note = f"{EMBEDDING} ({done} of {len(missing)} done)"
            failure = await self._embed_batch(vectors, batch) or failure
            if self._due.is_set():
                return False
            done += len(batch)
            self._on_progress(Progress("embedding tools", done, len(missing)))
            if self._is_shown(done, len(missing)) and vectors.known:
                await self._search_with(model, index, hashes)
        self._search.model_note = failure
        await asyncio.to_thread(vectors.keep, index.items, hashes, absent)
        if model.scale is None and not failure:
            model.scale = await scale_of(model.embedder, self._scales)
            await self._search_with(model, index, hashes)
        return not failure

    def _is_shown(self, done: int, total: int) -> bool:
        """Whether to search what is embedded so far: not while the fallback knows every item."""
        return done == total or (self._fallback is None and done % SHOW_EVERY == 0)

    async def _embed_batch(self, vectors: ItemVectors, batch: Mapping[str, Item]) -> str:
        """Embed a batch, item by item if it fails as a whole. Return an error message, or an empty string."""
        try:
            await vectors.embed(batch)
            self.embedded += len(batch)
            return ""
        except ToolscriptError as error:
            if len(batch) == 1:
                reason = {"part": "model", "reason": error.message}
                logger.warning(
                    "a tool is searchable by keywords only: %s", next(iter(batch.values())).name, extra=reason
                )
                return error.message
            each = [await self._embed_batch(vectors, {key: item}) for key, item in batch.items()]
            return next(filter(None, each), "")
