"""Which index a process works with, and the change from one model to another."""

from dataclasses import dataclass

from toolscript.errors import ModelMismatch, SetupError
from toolscript.model.dirty import Generation, GenerationState
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import DirtySet, Index, Indexes

FILL_BATCH = 5_000


@dataclass(frozen=True)
class Opened:
    generation: Generation
    index: Index


async def open_for_writing(indexes: Indexes, dirty: DirtySet, card: IndexCard) -> Opened:
    """The generation this model's worker follows. The first worker of all chooses the model."""
    live = await dirty.adopt(card.fingerprint)
    known = [found for found in await dirty.generations() if found.fingerprint == card.fingerprint]
    if not known:
        raise _mismatch(live.fingerprint or "?", card)
    await indexes.create(card)
    if known[0].id == live.id and await indexes.live() is None:
        await indexes.make_live(card.fingerprint)
    return Opened(known[0], await indexes.open(card))


async def open_for_reading(indexes: Indexes, card: IndexCard) -> Index:
    """The live index, when it was made with this card; it is held on to when another becomes live."""
    live = await indexes.live()
    if live is None:
        raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
    if live != card.fingerprint:
        raise _mismatch(live, card)
    return await indexes.open(card)


async def begin_reindex(
    indexes: Indexes, dirty: DirtySet, card: IndexCard, on_progress: OnProgress = silent
) -> Opened:
    """A new index beside the live one, with every item of the catalog waiting to go into it."""
    generation = await dirty.begin(card.fingerprint)
    await indexes.create(card)
    marked = 0
    while count := await dirty.fill(generation.id, FILL_BATCH):
        marked += count
        on_progress(Progress("mark", marked))
    return Opened(generation, await indexes.open(card))


async def switch_to(indexes: Indexes, dirty: DirtySet, generation: Generation) -> None:
    """Alias first: if we die in between, the next run finds the alias right and finishes the record."""
    if generation.fingerprint is None:
        raise SetupError("this generation has no index yet", hint="run `toolscript worker` to build it")
    await indexes.make_live(generation.fingerprint)
    await dirty.set_state(generation.id, GenerationState.LIVE)


async def drop_previous(indexes: Indexes, dirty: DirtySet) -> list[str]:
    """Ends every generation that is no longer live, and its collection with it."""
    ended = [found for found in await dirty.generations() if found.state is GenerationState.PREVIOUS]
    for generation in ended:
        if generation.fingerprint is not None:
            await indexes.drop(generation.fingerprint)
        await dirty.forget(generation.id)
    return [generation.fingerprint or "" for generation in ended]


def _mismatch(live: str, card: IndexCard) -> ModelMismatch:
    return ModelMismatch(
        f"the live index has fingerprint {live}; model {card.model.name} would make {card.fingerprint}",
        hint="set TOOLSCRIPT_EMBEDDING_MODEL back to the model of the index, "
        "or run `toolscript reindex` to build an index with this one",
        details={"live": live, "wanted": card.fingerprint, "model": card.model.name},
    )
