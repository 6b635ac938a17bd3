"""Which indexes a library is written into: those that are live, made with the model in use."""

from dataclasses import dataclass

from toolscript.errors import ModelMismatch, SetupError
from toolscript.model.models import IndexCard
from toolscript.ports import Index, Indexes, LibraryReader

REINDEX = "toolscript ingest --reindex"


@dataclass(frozen=True)
class LibraryIndexes:
    """Of chunks and of extractions: made, named and dropped together."""

    chunks: Indexes
    extractions: Indexes

    async def live(self) -> str | None:
        """None where either is missing, and no fingerprint at all where they differ: neither is any use alone."""
        chunks, extractions = await self.chunks.live(), await self.extractions.live()
        if chunks is None or extractions is None:
            return None
        return chunks if chunks == extractions else f"{chunks} and {extractions}"

    async def create(self, card: IndexCard) -> None:
        await self.extractions.create(card)
        await self.chunks.create(card)

    async def open(self, card: IndexCard) -> tuple[Index, Index]:
        return await self.chunks.open(card), await self.extractions.open(card)

    async def make_live(self, fingerprint: str) -> None:
        """Chunks last: what is live goes by them."""
        await self.extractions.make_live(fingerprint)
        await self.chunks.make_live(fingerprint)

    async def drop(self, fingerprint: str) -> None:
        await self.chunks.drop(fingerprint)
        await self.extractions.drop(fingerprint)


async def prepare_indexes(indexes: LibraryIndexes, card: IndexCard, reader: LibraryReader) -> None:
    """They are live and made with this card; those of a library without anything in it are made now."""
    live = await indexes.live()
    if live is None:
        if await reader.source_page("", 1):
            raise SetupError(
                "the library has sources, and their index is gone", hint=f"`{REINDEX}` builds it from the library"
            )
        await indexes.create(card)
        await indexes.make_live(card.fingerprint)
    await require_live(indexes, card)


async def require_live(indexes: LibraryIndexes, card: IndexCard) -> None:
    live = await indexes.live()
    if live != card.fingerprint:
        raise ModelMismatch(
            f"the library's index has fingerprint {live}; model {card.model.name} would make {card.fingerprint}",
            hint="set TOOLSCRIPT_EMBEDDING_MODEL back to the model of the index, "
            f"or run `{REINDEX}` to build one with this model",
            details={"live": live, "wanted": card.fingerprint, "model": card.model.name},
        )
