"""The collections by fingerprint, and the alias that names the live one."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import grpc

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant, translated
from toolscript.adapters.qdrant.index import QdrantIndex
from toolscript.adapters.qdrant.layout import Layout, create_request, field_requests
from toolscript.adapters.qdrant.values import from_value
from toolscript.errors import ModelMismatch
from toolscript.model.models import IndexCard
from toolscript.ports import Index


class QdrantIndexes:
    def __init__(self, qdrant: Qdrant, alias: str, layout: Layout) -> None:
        self._qdrant = qdrant
        self._alias = alias
        self._layout = layout

    async def live(self) -> str | None:
        answer = await self._collections("ListAliases", wire.ListAliasesRequest())
        for found in answer.aliases:
            if found.alias_name == self._alias:
                return str(found.collection_name).removeprefix(f"{self._alias}__")
        return None

    async def create(self, card: IndexCard) -> None:
        name = self._name(card.fingerprint)
        metadata = {"fingerprint": card.fingerprint, **asdict(card)}
        try:
            await self._collections("Create", create_request(name, card, metadata, self._layout))
        except Exception as error:
            if not _exists_already(error):
                raise
        for request in field_requests(name, self._layout):
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
        return QdrantIndex(self._qdrant, name, card)

    async def make_live(self, fingerprint: str) -> None:
        # The engine applies one alias action after the other: failing on the second, it keeps the first.
        await self._info(self._name(fingerprint))
        create = wire.CreateAlias(collection_name=self._name(fingerprint), alias_name=self._alias)
        actions = [wire.AliasOperations(create_alias=create)]
        if await self.live() is not None:
            delete = wire.DeleteAlias(alias_name=self._alias)
            actions.insert(0, wire.AliasOperations(delete_alias=delete))
        await self._change_aliases(actions)

    async def drop(self, fingerprint: str) -> None:
        request = wire.DeleteCollection(collection_name=self._name(fingerprint))
        await self._collections("Delete", request)

    async def _change_aliases(self, actions: Sequence[wire.AliasOperations]) -> None:
        await self._collections("UpdateAliases", wire.ChangeAliases(actions=actions))

    async def _info(self, name: str) -> Any:
        return await self._collections("Get", wire.GetCollectionInfoRequest(collection_name=name))

    async def _collections(self, method: str, request: object) -> Any:
        call = getattr(self._qdrant.collections, method)
        with translated():
            return await call(request, timeout=self._qdrant.timeout_seconds)

    def _name(self, fingerprint: str) -> str:
        return f"{self._alias}__{fingerprint}"


def _exists_already(error: Exception) -> bool:
    cause = error.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and "already exists" in str(cause.details())
