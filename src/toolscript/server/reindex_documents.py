"""reindex documents: moves them to another model or number of shards while tenants search and write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, count, cycle, islice

import numpy as np

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, IndexLost, NotFound, SetupError
from toolscript.core.qdrant.collections import list_collections
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress
from toolscript.documents.model.points import ChunkQuery, DocumentCard, DocumentVersion, VersionState
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants
from toolscript.documents.qdrant.collection import (
    QdrantDocuments,
    create_documents,
    documents_of,
    drop_documents,
    make_documents_live,
)
from toolscript.documents.qdrant.shards import make_own_shards, own_shards
from toolscript.documents.reindex import DocumentCopy, DocumentReindex, lease
from toolscript.documents.throttle import Probe, Throttle
from toolscript.server.audit import recorded
from toolscript.server.document_index import LiveIndex, document_layout, require_same_texts
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, embedder_of, model_source, open_embedder, open_stores

PROBED_TENANTS = 100
PROBED_CHUNKS = 10


def reindex_documents(
    *,
    model: str | None,
    shards: int | None,
    own_shards: Mapping[str, int],
    share: float,
    on_progress: OnProgress,
    anew: bool = False,
) -> dict[str, object]:
    """Build an index of another model or layout; `anew`: also of the same, which leaves behind what was erased."""

    async def build(job: "_Job") -> dict[str, object]:
        async with open_embedder(job.settings, parallel=1) as embedder:
            live = await job.live()
            own = {Tenant(name): number for name, number in own_shards.items()}
            target = await job.target(live, DocumentCard(embedder.model), shards, own, anew=anew)
            if target is None:
                return await job.finished(live, embedder, share, on_progress)
            async with job.reindex(live, target, embedder, share, on_progress) as reindex:
                done = await reindex.build()
            return {**asdict(done), "model": target.card.model.name, "shards": target.layout.shards}

    return _run(build, model, "index.switch")


def roll_back_documents(*, share: float, on_progress: OnProgress) -> dict[str, object]:
    """Switch back to the previous version, after copying all later changes to it."""

    async def roll_back(job: "_Job") -> dict[str, object]:
        live, previous = await job.live(), await job.opened(await job.recorded(VersionState.PREVIOUS))
        require_same_texts(previous)
        async with (
            open_embedder(job.settings, parallel=1) as configured,
            embedder_of(previous.origin, job.settings, configured, "documents") as embedder,
        ):
            async with job.reindex(live, previous, embedder, share, on_progress) as reindex:
                done = await reindex.roll_back()
            return {**asdict(done), "model": previous.card.model.name, "shards": previous.layout.shards}

    return _run(roll_back, None, "index.roll_back")


def drop_document_version(*, building: bool) -> dict[str, object]:
    """Drop the previous version, or cancel and drop the one that is being built."""

    async def drop(job: "_Job") -> dict[str, object]:
        version = await job.recorded(VersionState.BUILDING if building else VersionState.PREVIOUS)
        # Delete the record first: a recorded version must have its collection.
        await job.versions.forget(version.name)
        await drop_documents(job.stores.qdrant, version.name)
        return {"dropped": version.name}

    return _run(drop, None, "index.drop")


def begin_empty_documents(confirm: Callable[[str], None]) -> dict[str, object]:
    """Begin with an empty index after the loss of the one before. Raise Conflict if it is not lost."""

    async def begin(job: "_Job") -> dict[str, object]:
        tenants = PostgresTenants(job.stores.pool)
        holders = await tenants.holders(or_unknown=True)
        try:
            live = await job.live()
        except IndexLost:
            confirm(f"Give up the documents of {holders:,} tenants, and begin with none?")
        else:
            raise Conflict(
                f"nothing is lost: {live.name} has about {await live.passages():,} chunks, of {holders:,} tenants",
                hint="`toolscript tenants erase` deletes those of a tenant",
            )
        async with open_embedder(job.settings, parallel=1) as embedder:
            card = DocumentCard(embedder.model)
        index = await LiveIndex.of(job.settings, job.stores).create(await job.free_name(card), card)
        return {"live": index.name, "given_up_tenants": holders, "model": card.model.name}

    return _run(begin, None, "index.begin_empty")


def _run(
    work: "Callable[[_Job], Awaitable[dict[str, object]]]", model: str | None, action: str
) -> dict[str, object]:
    async def run() -> dict[str, object]:
        settings = load_settings()
        if model:
            settings = settings.model_copy(update={"embedding_model": model})
        async with open_stores(settings) as stores:
            versions = PostgresDocumentVersions(stores.pool)
            async with lease(versions):
                return await work(_Job(settings, stores, versions))

    with recorded(action, "documents") as change:
        done = asyncio.run(run())
        change.count = 1
        change.details |= done
    return done


@dataclass(frozen=True)
class _Job:
    settings: Settings
    stores: Stores
    versions: PostgresDocumentVersions

    @property
    def alias(self) -> str:
        return self.settings.qdrant_documents_alias

    async def live(self) -> QdrantDocuments:
        """Open the live version on record, completing an interrupted switch of the alias."""
        live = await LiveIndex.of(self.settings, self.stores).open()
        if live is None:
            raise NotFound("no document was ever put here", hint="`toolscript documents put` puts some")
        return live

    async def recorded(self, state: VersionState) -> DocumentVersion:
        for version in await self.versions.all():
            if version.state is state:
                return version
        raise NotFound(
            f"there is no {state} version of the documents' index",
            hint="`toolscript reindex documents` builds one beside the live one",
        )

    async def opened(self, version: DocumentVersion) -> QdrantDocuments:
        return await documents_of(self.stores.qdrant, version.name, document_layout(self.settings))

    async def target(
        self,
        live: QdrantDocuments,
        card: DocumentCard,
        shards: int | None,
        own: Mapping[Tenant, int],
        *,
        anew: bool,
    ) -> QdrantDocuments | None:
        """Return the version to fill, created or resumed; None if the live one already matches.

        Tenants keep the number of their own shards, unless `own` sets another one.
        """
        layout = replace(live.layout, shards=live.layout.shards if shards is None else shards)
        if own and not layout.shards:
            raise SetupError(
                "tenants cannot have their own shards here", hint="use a Qdrant cluster, and set --shards"
            )
        own_shards_now = await own_shards(self.stores.qdrant, live.name) if live.layout.shards else {}
        own_shards_after = {**own_shards_now, **own} if layout.shards else {}
        building = [version for version in await self.versions.all() if version.state is VersionState.BUILDING]
        if building:
            index = await self.opened(building[0])
            if (index.card, index.layout.shards) != (card, layout.shards):
                raise Conflict(
                    f"{index.name} is being built, with {index.card.model.name} and {index.layout.shards} shards",
                    hint="continue with its model and shards, or cancel it with `--cancel`",
                )
            return index
        is_same = (live.card, live.layout.shards, own_shards_now) == (card, layout.shards, own_shards_after)
        if is_same and not anew:
            return None
        name = await self.free_name(card)
        created = await create_documents(self.stores.qdrant, name, card, layout, model_source(self.settings))
        await make_own_shards(self.stores.qdrant, name, own_shards_after, layout.replicas)
        return created

    async def finished(
        self, live: QdrantDocuments, embedder: Embedder, share: float, on_progress: OnProgress
    ) -> dict[str, object]:
        """Complete a run that was killed after its switch. Raise if there is nothing to do."""
        previous = [version for version in await self.versions.all() if version.state is VersionState.PREVIOUS]
        if not previous:
            raise SetupError(
                "the documents are indexed like this already",
                hint="choose another --model or --shards, or set TOOLSCRIPT_EMBEDDING_MODEL",
            )
        before = await self.opened(previous[0])
        async with self.reindex(before, live, embedder, share, on_progress) as reindex:
            done = await reindex.finish()
        return {**asdict(done), "model": live.card.model.name, "shards": live.layout.shards}

    @asynccontextmanager
    async def reindex(
        self,
        source: QdrantDocuments,
        target: QdrantDocuments,
        embedder: Embedder,
        share: float,
        on_progress: OnProgress,
    ) -> AsyncIterator[DocumentReindex]:
        tenants = PostgresTenants(self.stores.pool)
        throttle = Throttle((1 - share) / share, await _random_search(source, tenants))
        copy = DocumentCopy(source, target, embedder, throttle)
        async with throttle.watched():
            yield DocumentReindex(self.versions, tenants, copy, self.make_live, on_progress=on_progress)

    async def make_live(self, name: str) -> None:
        await make_documents_live(self.stores.qdrant, self.alias, name)

    async def free_name(self, card: DocumentCard) -> str:
        """Return an unused name: the fingerprint of the model, and a number for a second version of one model.

        Drop empty collections without a record: they are left over from a run that was killed early.
        """
        collections = await list_collections(self.stores.qdrant, self.alias)
        recorded = {version.name for version in await self.versions.all()}
        for collection in collections:
            if not (collection.is_live or collection.points or collection.origin.collection in recorded):
                await drop_documents(self.stores.qdrant, collection.origin.collection)
        taken = {
            collection.origin.collection for collection in collections if collection.is_live or collection.points
        } | recorded
        first = f"{self.alias}__{card.fingerprint}"
        names = chain([first], (f"{first}_{number}" for number in count(2)))
        return next(name for name in names if name not in taken)


async def _random_search(index: QdrantDocuments, tenants: PostgresTenants) -> Probe:
    """Return a probe that searches for a random vector, for one tenant after the other."""
    tenants_in_turn = cycle([known.tenant for known in await tenants.page("", PROBED_TENANTS)])
    random = np.random.default_rng()

    async def search() -> None:
        direction = random.standard_normal(index.card.model.dimensions).astype(np.float32)
        vector = direction / np.linalg.norm(direction)
        for tenant in islice(tenants_in_turn, 1):
            await index.of(tenant).search(ChunkQuery(vector, limit=PROBED_CHUNKS))

    return search
