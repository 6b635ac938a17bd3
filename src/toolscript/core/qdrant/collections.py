"""Collections by fingerprint, and the alias of the live one."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from toolscript.core.errors import IndexUnavailable, ModelMismatch, ToolscriptError
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
    """Index versions behind one alias. `source` describes how the embedding model of new ones is loaded."""

    def __init__(self, qdrant: Qdrant, alias: str, layout: Layout, source: str = "") -> None:
        self._qdrant = qdrant
        self._alias = alias
        self._layout = layout
        self._source = source

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
        name = self._name(card.fingerprint)
        answer = await self._collections("CollectionExists", wire.CollectionExistsRequest(collection_name=name))
        if not answer.result.exists:
            return None
        return await QdrantIndex(self._qdrant, name, card, self._layout).count()

    async def create(self, card: IndexCard) -> None:
        name = self._name(card.fingerprint)
        metadata = {"fingerprint": card.fingerprint, **asdict(card), "source": self._source}
        try:
            await self._collections("Create", create_request(name, card, metadata, self._layout))
        except ToolscriptError as error:
            if not exists_already(error):
                raise
        await self._complete(name)

    async def _complete(self, name: str) -> None:
        """Complete only the steps that a killed process left undone.

        An update of a collection, even without a change, interrupts an optimization, and the engine loses the
        removals made during it.
        """
        info = (await self._info(name)).result
        # A process killed during a bulk load leaves the collection without a graph.
        if not is_searching(info.config.optimizer_config):
            await self._optimize(name, searching_config())
        for request in field_requests(name, self._layout):
            if request.field_name not in info.payload_schema:
                with translated():
                    await self._qdrant.points.CreateFieldIndex(request, timeout=self._qdrant.timeout_seconds)

    async def open(self, card: IndexCard) -> Index:
        name = self._name(card.fingerprint)
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
        name = self._name(card.fingerprint)
        await self._optimize(name, loading_config())
        try:
            yield
        finally:
            await self._optimize(name, searching_config())
        await self._wait_until_settled(name)

    async def make_live(self, fingerprint: str) -> None:
        # Creating an alias moves it if it exists. Deleting it first could end with none, if creating then fails.
        create = wire.CreateAlias(collection_name=self._name(fingerprint), alias_name=self._alias)
        request = wire.ChangeAliases(actions=[wire.AliasOperations(create_alias=create)])
        await self._collections("UpdateAliases", request)

    async def drop(self, fingerprint: str) -> None:
        request = wire.DeleteCollection(collection_name=self._name(fingerprint))
        await self._collections("Delete", request)

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

    def _name(self, fingerprint: str) -> str:
        return f"{self._alias}__{fingerprint}"


@dataclass(frozen=True)
class CollectionInfo:
    origin: IndexOrigin
    points: int
    shards: int
    is_live: bool


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
            collections.append(CollectionInfo(origin, int(info.points_count), len(shards), name in live))
    return collections


def _is_of(alias: str, name: str) -> bool:
    """Return whether a collection belongs to the alias; one alias may be a prefix of another."""
    return name.startswith(f"{alias}__") and "__" not in name.removeprefix(f"{alias}__")


def origin_of(collection: str, metadata: Mapping[str, wire.Value]) -> IndexOrigin:
    """Return the origin of a collection from the metadata written at its creation."""
    model = ModelCard(**cast("dict[str, Any]", from_value(metadata["model"])))
    source = from_value(metadata["source"]) if "source" in metadata else ""
    return IndexOrigin(collection, model, str(source))
