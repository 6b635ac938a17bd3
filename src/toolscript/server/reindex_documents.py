"""reindex documents: another model, or another number of shards, while tenants search and write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, count, cycle, islice

import numpy as np

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, NotFound, SetupError
from toolscript.core.qdrant.collections import found_collections
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
    live_documents,
    make_documents_live,
)
from toolscript.documents.qdrant.shards import make_own_shards, own_shards
from toolscript.documents.reindex import DocumentCopy, DocumentReindex, lease
from toolscript.documents.throttle import Probe, Throttle
from toolscript.server.document_index import document_layout, require_same_texts
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, embedder_of, model_source, open_embedder, open_stores

PROBED_TENANTS = 100
PROBED_PASSAGES = 10


def reindex_documents(
    *,
    model: str | None,
    shards: int | None,
    own_shards: Mapping[str, int],
    share: float,
    on_progress: OnProgress,
) -> dict[str, object]:
    async def build(job: "_Job") -> dict[str, object]:
        async with open_embedder(job.settings, parallel=1) as embedder:
            live = await job.live()
            own = {Tenant(name): number for name, number in own_shards.items()}
            target = await job.target(live, DocumentCard(embedder.model), shards, own)
            if target is None:
                return await job.finished(live, embedder, share, on_progress)
            async with job.reindex(live, target, embedder, share, on_progress) as reindex:
                done = await reindex.build()
            return {**asdict(done), "model": target.card.model.name, "shards": target.layout.shards}

    return _run(build, model)


def roll_back_documents(*, share: float, on_progress: OnProgress) -> dict[str, object]:
    """To the previous version, which gets all that was put since."""

    async def roll_back(job: "_Job") -> dict[str, object]:
        live, previous = await job.live(), await job.opened(await job.known(VersionState.PREVIOUS))
        require_same_texts(previous)
        async with (
            open_embedder(job.settings, parallel=1) as configured,
            embedder_of(previous.origin, job.settings, configured, "documents") as embedder,
        ):
            async with job.reindex(live, previous, embedder, share, on_progress) as reindex:
                done = await reindex.roll_back()
            return {**asdict(done), "model": previous.card.model.name, "shards": previous.layout.shards}

    return _run(roll_back, None)


def drop_document_version(*, building: bool) -> dict[str, object]:
    """The previous one, or the one that is being built and is given up."""

    async def drop(job: "_Job") -> dict[str, object]:
        version = await job.known(VersionState.BUILDING if building else VersionState.PREVIOUS)
        # The record first: a version that is still recorded must have its collection.
        await job.versions.forget(version.name)
        await drop_documents(job.stores.qdrant, version.name)
        return {"dropped": version.name}

    return _run(drop, None)


def _run(work: "Callable[[_Job], Awaitable[dict[str, object]]]", model: str | None) -> dict[str, object]:
    async def run() -> dict[str, object]:
        settings = load_settings()
        if model:
            settings = settings.model_copy(update={"embedding_model": model})
        async with open_stores(settings) as stores:
            versions = PostgresDocumentVersions(stores.pool)
            async with lease(versions):
                return await work(_Job(settings, stores, versions))

    return asyncio.run(run())


@dataclass(frozen=True)
class _Job:
    settings: Settings
    stores: Stores
    versions: PostgresDocumentVersions

    @property
    def alias(self) -> str:
        return self.settings.qdrant_documents_alias

    async def live(self) -> QdrantDocuments:
        """As it is recorded: of a switch that was interrupted the alias is moved now."""
        recorded = [version for version in await self.versions.all() if version.state is VersionState.LIVE]
        if recorded:
            await self.make_live(recorded[0].name)
        live = await live_documents(self.stores.qdrant, self.alias, document_layout(self.settings))
        if live is None:
            raise NotFound("no document was ever put here", hint="`toolscript documents put` puts some")
        return live

    async def known(self, state: VersionState) -> DocumentVersion:
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
        self, live: QdrantDocuments, card: DocumentCard, shards: int | None, own: Mapping[Tenant, int]
    ) -> QdrantDocuments | None:
        """The version to fill, made or found; None where the live one is what is wanted.

        Whoever has shards of its own has as many in the new one, unless another number is given.
        """
        layout = replace(live.layout, shards=live.layout.shards if shards is None else shards)
        if own and not layout.shards:
            raise SetupError(
                "there are no shards that a tenant could have", hint="that takes a cluster of Qdrant, and --shards"
            )
        has = await own_shards(self.stores.qdrant, live.name) if live.layout.shards else {}
        wanted = {**has, **own} if layout.shards else {}
        building = [version for version in await self.versions.all() if version.state is VersionState.BUILDING]
        if building:
            index = await self.opened(building[0])
            if (index.card, index.layout.shards) != (card, layout.shards):
                raise Conflict(
                    f"{index.name} is being built, with {index.card.model.name} and {index.layout.shards} shards",
                    hint="go on with its model and shards, or give it up with `--cancel`",
                )
            return index
        if (live.card, live.layout.shards, has) == (card, layout.shards, wanted):
            return None
        name = await self._free_name(card)
        made = await create_documents(self.stores.qdrant, name, card, layout, model_source(self.settings))
        await make_own_shards(self.stores.qdrant, name, wanted, layout.replicas)
        return made

    async def finished(
        self, live: QdrantDocuments, embedder: Embedder, share: float, on_progress: OnProgress
    ) -> dict[str, object]:
        """A run that was killed after its switch is completed; without one there is nothing to do."""
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
        pace = Throttle((1 - share) / share, await _search_like_others(source, tenants))
        copy = DocumentCopy(source, target, embedder, pace)
        async with pace.watched():
            yield DocumentReindex(self.versions, tenants, copy, self.make_live, on_progress=on_progress)

    async def make_live(self, name: str) -> None:
        await make_documents_live(self.stores.qdrant, self.alias, name)

    async def _free_name(self, card: DocumentCard) -> str:
        """A name tells the model; a second version of one model has a number.

        One that is empty was left by a run that was killed before anything was recorded.
        """
        collections = await found_collections(self.stores.qdrant, self.alias)
        recorded = {one.name for one in await self.versions.all()}
        for one in collections:
            if not (one.is_live or one.points or one.origin.collection in recorded):
                await drop_documents(self.stores.qdrant, one.origin.collection)
        taken = {one.origin.collection for one in collections if one.is_live or one.points} | recorded
        first = f"{self.alias}__{card.fingerprint}"
        names = chain([first], (f"{first}_{number}" for number in count(2)))
        return next(name for name in names if name not in taken)


async def _search_like_others(index: QdrantDocuments, tenants: PostgresTenants) -> Probe:
    """Asks for what is near some direction, of one tenant after the other."""
    known = cycle([known_tenant.tenant for known_tenant in await tenants.page("", PROBED_TENANTS)])
    chance = np.random.default_rng()

    async def search() -> None:
        direction = chance.standard_normal(index.card.model.dimensions).astype(np.float32)
        vector = direction / np.linalg.norm(direction)
        for tenant in islice(known, 1):
            await index.of(tenant).search(ChunkQuery(vector, limit=PROBED_PASSAGES))

    return search
