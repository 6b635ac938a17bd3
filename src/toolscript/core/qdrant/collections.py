"""Collections by fingerprint, and the alias of the live one."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from toolscript.core.errors import IndexUnavailable, ModelMismatch, ToolscriptError
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, call_collections, exists_already, translated
from toolscript.core.qdrant.index import QdrantIndex
from toolscript.core.qdrant.layout import (
    Layout,
    create_request,
    field_requests,
    is_searching,
    loading_config,
    searching_config,
)
from toolscript.core.qdrant.values import from_value
from toolscript.core.retrieval.model import IndexCard, IndexOrigin, ModelCard
from toolscript.core.retrieval.ports import Index

SETTLE_SECONDS = 6 * 3600.0


class QdrantIndexes:
    """Index versions behind one alias. `source` describes how the embedding model of new ones is loaded.

    The collection of the default namespace is `<alias>__<fingerprint>`, that of another one has its name as a
    suffix. The alias names the former: the others of the live index version are found by their fingerprint.
    """

    def __init__(self, qdrant: Qdrant, alias: str, layout: Layout, source: str = "") -> None:
        self._qdrant = qdrant
        self._alias = alias
        self._layout = layout
        self._source = source
        self._loading = set[str]()

    async def namespaces(self, card: IndexCard) -> Sequence[str]:
        return list(await self._names(card.fingerprint))

    async def live(self) -> str | None:
        answer = await self._collections("ListAliases", wire.ListAliasesRequest())
        for alias in answer.aliases:
            if alias.alias_name == self._alias:
                return str(alias.collection_name).removeprefix(f"{self._alias}__")
        return None

    async def origin(self) -> IndexOrigin | None:
        live = await self.live()
        if live is None:
            return None
        name = self._name(live)
        return origin_of(name, (await self._info(name)).result.config.metadata)

    async def size(self, card: IndexCard) -> int | None:
        names = await self._names(card.fingerprint)
        if DEFAULT_NAMESPACE not in names:
            return None
        counts = (QdrantIndex(self._qdrant, name, card, self._layout).count() for name in names.values())
        return sum(await asyncio.gather(*counts))

    async def create(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> None:
        name = self._name(card.fingerprint, namespace)
        metadata = {"fingerprint": card.fingerprint, **asdict(card), "source": self._source}
        try:
            await self._collections("Create", create_request(name, card, metadata, self._layout))
        except ToolscriptError as error:
            if not exists_already(error):
                raise
        await self._complete(name, is_loading=card.fingerprint in self._loading)

    async def _complete(self, name: str, *, is_loading: bool) -> None:
        """Complete only the steps that a killed process left undone.

        An update of a collection, even without a change, interrupts an optimization, and the engine loses the
        removals made during it.
        """
        info = (await self._info(name)).result
        # A process killed during a bulk load leaves the collection without a graph.
        if is_searching(info.config.optimizer_config) is is_loading:
            await self._optimize(name, loading_config() if is_loading else searching_config())
        for request in field_requests(name, self._layout):
            if request.field_name not in info.payload_schema:
                with translated():
                    await self._qdrant.points.CreateFieldIndex(request, timeout=self._qdrant.timeout_seconds)

    async def open(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> Index:
        name = self._name(card.fingerprint, namespace)
        answer = await self._info(name)
        fingerprint = from_value(answer.result.config.metadata["fingerprint"])
        if fingerprint != card.fingerprint:
            raise ModelMismatch(
                f"collection {name} was built as {fingerprint}, not as {card.fingerprint}",
                hint="run `toolscript reindex` to rebuild it",
            )
        index = QdrantIndex(self._qdrant, name, card, self._layout)
        await index.sample()
        return index

    @asynccontextmanager
    async def loading(self, card: IndexCard) -> AsyncIterator[None]:
        """Bulk-load points. A collection that is created meanwhile is loaded in the same way."""
        await self._optimize_all(card, loading_config())
        self._loading.add(card.fingerprint)
        try:
            yield
        finally:
            self._loading.discard(card.fingerprint)
            await self._optimize_all(card, searching_config())
        for name in (await self._names(card.fingerprint)).values():
            await self._wait_until_settled(name)

    async def make_live(self, fingerprint: str) -> None:
        # Creating an alias moves it if it exists. Deleting it first could end with none, if creating then fails.
        create = wire.CreateAlias(collection_name=self._name(fingerprint), alias_name=self._alias)
        request = wire.ChangeAliases(actions=[wire.AliasOperations(create_alias=create)])
        await self._collections("UpdateAliases", request)

    async def drop(self, fingerprint: str) -> None:
        for name in (await self._names(fingerprint)).values():
            await self._collections("Delete", wire.DeleteCollection(collection_name=name))

    async def _optimize_all(self, card: IndexCard, config: wire.OptimizersConfigDiff) -> None:
        """Configure all collections; if there is none, the engine refuses that of the default namespace."""
        names = (await self._names(card.fingerprint)).values() or [self._name(card.fingerprint)]
        for name in names:
            await self._optimize(name, config)

    async def _optimize(self, name: str, config: wire.OptimizersConfigDiff) -> None:
        await self._collections("Update", wire.UpdateCollection(collection_name=name, optimizers_config=config))

    async def _wait_until_settled(self, name: str) -> None:
        """Wait for status green twice in a row: the engine is idle for a moment between two merges."""
        green, deadline = 0, time.monotonic() + SETTLE_SECONDS
        while green < 2:
            status = (await self._info(name)).result.status
            green = green + 1 if status == wire.CollectionStatus.Green else 0
            if time.monotonic() > deadline:
                raise IndexUnavailable(
                    f"Qdrant is still building {name} after {SETTLE_SECONDS} s", hint="wait and retry"
                )
            await asyncio.sleep(0.5)

    async def _info(self, name: str) -> Any:
        return await self._collections("Get", wire.GetCollectionInfoRequest(collection_name=name))

    async def _collections(self, method: str, request: object) -> Any:
        return await call_collections(self._qdrant, method, request)

    async def _names(self, fingerprint: str) -> dict[str, str]:
        """Return the collections of an index version by namespace, in order of namespace."""
        listed = await self._collections("List", wire.ListCollectionsRequest())
        default = self._name(fingerprint)
        names = {
            namespace_of(self._alias, str(entry.name)): str(entry.name)
            for entry in listed.collections
            if entry.name == default or str(entry.name).startswith(f"{default}.")
        }
        return dict(sorted(names.items()))

    def _name(self, fingerprint: str, namespace: str = DEFAULT_NAMESPACE) -> str:
        name = f"{self._alias}__{fingerprint}"
        return name if namespace == DEFAULT_NAMESPACE else f"{name}.{namespace}"


@dataclass(frozen=True)
class CollectionInfo:
    origin: IndexOrigin
    points: int
    shards: int
    is_live: bool
    namespace: str = DEFAULT_NAMESPACE

    @property
    def index_version(self) -> str:
        """The name of the default namespace's collection, which the collections of an index version share."""
        return self.origin.collection.removesuffix(f".{self.namespace}")


async def list_collections(qdrant: Qdrant, alias: str) -> list[CollectionInfo]:
    """Return all collections created under this alias."""
    listed = await call_collections(qdrant, "List", wire.ListCollectionsRequest())
    aliases = await call_collections(qdrant, "ListAliases", wire.ListAliasesRequest())
    live = {str(entry.collection_name) for entry in aliases.aliases if entry.alias_name == alias}
    names = sorted(str(entry.name) for entry in listed.collections if _is_of(alias, entry.name))
    collections = list[CollectionInfo]()
    for name in names:
        info_request = wire.GetCollectionInfoRequest(collection_name=name)
        info = (await call_collections(qdrant, "Get", info_request)).result
        if "model" in info.config.metadata:
            origin = origin_of(name, info.config.metadata)
            cluster_request = wire.CollectionClusterInfoRequest(collection_name=name)
            cluster = await call_collections(qdrant, "CollectionClusterInfo", cluster_request)
            shards = {shard.shard_id for shard in (*cluster.local_shards, *cluster.remote_shards)}
            namespace = namespace_of(alias, name)
            is_live = name.removesuffix(f".{namespace}") in live
            collections.append(CollectionInfo(origin, int(info.points_count), len(shards), is_live, namespace))
    return collections


def _is_of(alias: str, name: str) -> bool:
    """Return whether a collection belongs to the alias; one alias may be a prefix of another."""
    return name.startswith(f"{alias}__") and "__" not in name.removeprefix(f"{alias}__")


def namespace_of(alias: str, name: str) -> str:
    """Return the namespace of a collection under this alias."""
    return name.removeprefix(f"{alias}__").partition(".")[2] or DEFAULT_NAMESPACE


def origin_of(collection: str, metadata: Mapping[str, wire.Value]) -> IndexOrigin:
    """Return the origin of a collection from the metadata written at its creation."""
    model = ModelCard(**cast("dict[str, Any]", from_value(metadata["model"])))
    source = from_value(metadata["source"]) if "source" in metadata else ""
    return IndexOrigin(collection, model, str(source))
