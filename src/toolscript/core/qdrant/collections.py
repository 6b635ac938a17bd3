"""The collections by fingerprint, and the alias that names the live one."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from toolscript.core.errors import IndexUnavailable, ModelMismatch, ToolscriptError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, ask_collections, exists_already, translated
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
    """`source` says how the model is loaded that makes new ones."""

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
        known = await self._collections("CollectionExists", wire.CollectionExistsRequest(collection_name=name))
        if not known.result.exists:
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
        """What a killed process left undone, and nothing else: the engine interrupts an optimization to change a
        collection, even to what it is already, and loses what was removed from it meanwhile."""
        info = (await self._info(name)).result
        # A process that was killed while it was loading has left the collection without a graph.
        if not is_searching(info.config.optimizer_config):
            await self._optimize(name, searching_config())
        for request in field_requests(name, self._layout):
            if request.field_name not in info.payload_schema:
                with translated():
                    await self._qdrant.points.CreateFieldIndex(request, timeout=self._qdrant.timeout_seconds)

    async def open(self, card: IndexCard) -> Index:
        name = self._name(card.fingerprint)
        answer = await self._info(name)
        found = from_value(answer.result.config.metadata["fingerprint"])
        if found != card.fingerprint:
            raise ModelMismatch(
                f"collection {name} says it was built as {found}, not {card.fingerprint}",
                hint="run `toolscript reindex` to build it anew",
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
        await self._until_settled(name)

    async def make_live(self, fingerprint: str) -> None:
        # Creating an alias moves it if it exists. Deleting it first could end with none, if creating then fails.
        create = wire.CreateAlias(collection_name=self._name(fingerprint), alias_name=self._alias)
        moved = wire.ChangeAliases(actions=[wire.AliasOperations(create_alias=create)])
        await self._collections("UpdateAliases", moved)

    async def drop(self, fingerprint: str) -> None:
        request = wire.DeleteCollection(collection_name=self._name(fingerprint))
        await self._collections("Delete", request)

    async def _optimize(self, name: str, config: wire.OptimizersConfigDiff) -> None:
        await self._collections("Update", wire.UpdateCollection(collection_name=name, optimizers_config=config))

    async def _until_settled(self, name: str) -> None:
        """Green twice in a row: between two merges the engine is idle for a moment."""
        green, ends_at = 0, time.monotonic() + SETTLE_SECONDS
        while green < 2:
            status = (await self._info(name)).result.status
            green = green + 1 if status == wire.CollectionStatus.Green else 0
            if time.monotonic() > ends_at:
                raise IndexUnavailable(
                    f"Qdrant is still building {name} after {SETTLE_SECONDS} s", hint="wait and retry"
                )
            await asyncio.sleep(0.5)

    async def _info(self, name: str) -> Any:
        return await self._collections("Get", wire.GetCollectionInfoRequest(collection_name=name))

    async def _collections(self, method: str, request: object) -> Any:
        return await ask_collections(self._qdrant, method, request)

    def _name(self, fingerprint: str) -> str:
        return f"{self._alias}__{fingerprint}"


@dataclass(frozen=True)
class FoundCollection:
    origin: IndexOrigin
    points: int
    shards: int
    is_live: bool


async def found_collections(qdrant: Qdrant, alias: str) -> list[FoundCollection]:
    """All that were made under this alias, whoever serves them."""
    listed = await ask_collections(qdrant, "List", wire.ListCollectionsRequest())
    aliases = await ask_collections(qdrant, "ListAliases", wire.ListAliasesRequest())
    live = {str(one.collection_name) for one in aliases.aliases if one.alias_name == alias}
    names = sorted(str(one.name) for one in listed.collections if _is_of(alias, one.name))
    collections = list[FoundCollection]()
    for name in names:
        named = wire.GetCollectionInfoRequest(collection_name=name)
        info = (await ask_collections(qdrant, "Get", named)).result
        if "model" in info.config.metadata:
            origin = origin_of(name, info.config.metadata)
            spread_of = wire.CollectionClusterInfoRequest(collection_name=name)
            spread = await ask_collections(qdrant, "CollectionClusterInfo", spread_of)
            shards = {one.shard_id for one in (*spread.local_shards, *spread.remote_shards)}
            collections.append(FoundCollection(origin, int(info.points_count), len(shards), name in live))
    return collections


def _is_of(alias: str, name: str) -> bool:
    """The name of an alias may be the beginning of another's."""
    return name.startswith(f"{alias}__") and "__" not in name.removeprefix(f"{alias}__")


def origin_of(collection: str, metadata: Mapping[str, wire.Value]) -> IndexOrigin:
    """From what was written into a collection when it was made."""
    model = ModelCard(**cast("dict[str, Any]", from_value(metadata["model"])))
    source = from_value(metadata["source"]) if "source" in metadata else ""
    return IndexOrigin(collection, model, str(source))
