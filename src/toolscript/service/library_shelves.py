"""A library with its indexes, opened to be written."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolscript.model.models import IndexCard
from toolscript.ports import Embedder, LibraryReader, LibraryWriter
from toolscript.service.knowledge_indexes import knowledge_card, knowledge_indexes
from toolscript.service.library import open_both
from toolscript.service.parts import connect_qdrant, open_embedder
from toolscript.settings.service import Settings
from toolscript.sync.chunking import TokenCount, estimated_tokens
from toolscript.sync.library_indexes import LibraryIndexes, prepare_indexes, require_live
from toolscript.sync.source_writing import Shelves


@runtime_checkable
class CountsTokens(Protocol):
    def count_tokens(self, text: str) -> int: ...


@dataclass(frozen=True)
class LibraryParts:
    """All that a library is made of, whether its indexes are there or not."""

    reader: LibraryReader
    writer: LibraryWriter
    embedder: Embedder
    indexes: LibraryIndexes

    @property
    def card(self) -> IndexCard:
        return knowledge_card(self.embedder.model)

    @property
    def tokens(self) -> TokenCount:
        """As the model counts them, where it is here to be asked."""
        return self.embedder.count_tokens if isinstance(self.embedder, CountsTokens) else estimated_tokens

    async def shelves(self) -> Shelves:
        """With the indexes of this model, which must be there."""
        chunks, extractions = await self.indexes.open(self.card)
        return Shelves(
            self.reader,
            self.writer,
            self.embedder,
            chunks,
            extractions,
            lambda: require_live(self.indexes, self.card),
        )


@asynccontextmanager
async def open_library_parts(settings: Settings) -> AsyncIterator[LibraryParts]:
    async with AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(open_both(settings))
        engine = await stack.enter_async_context(connect_qdrant(settings))
        embedder = await stack.enter_async_context(open_embedder(settings))
        yield LibraryParts(reader, writer, embedder, LibraryIndexes(*knowledge_indexes(engine, settings)))


async def prepared_shelves(parts: LibraryParts) -> Shelves:
    """With what has to be there before the first source is written."""
    await parts.writer.prepare()
    await prepare_indexes(parts.indexes, parts.card, parts.reader)
    return await parts.shelves()
