"""Which indexes a process works with, of items and of skills, and the change from one model to another."""

from dataclasses import dataclass

from toolscript.core.errors import ModelMismatch, SetupError
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Index, Indexes
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.catalog import Generation, GenerationState
from toolscript.tools.ports import DirtySet, SkillVectors

FILL_BATCH = 5_000


@dataclass(frozen=True)
class IndexPair:
    """The collections of items and those of skills: made, named and dropped together. `sums` knows the skills."""

    items: Indexes
    skills: Indexes
    sums: SkillVectors

    async def live(self) -> str | None:
        return await self.items.live()

    async def make_live(self, fingerprint: str) -> None:
        """Skills first: whoever finds the items finds theirs."""
        await self.skills.make_live(fingerprint)
        await self.items.make_live(fingerprint)

    async def drop(self, fingerprint: str) -> None:
        await self.items.drop(fingerprint)
        await self.skills.drop(fingerprint)


@dataclass(frozen=True)
class Opened:
    generation: Generation
    index: Index
    skills: Index


async def open_for_writing(indexes: IndexPair, dirty: DirtySet, card: IndexCard) -> Opened:
    """The generation this model's worker follows. The first worker of all chooses the model."""
    live = await dirty.adopt(card.fingerprint)
    known = await _generation_of(dirty, card)
    if known is None:
        raise _mismatch(live.fingerprint or "?", card)
    await _make_collections(indexes, dirty, known, card)
    await fill(dirty, known.id)
    if known.id == live.id and None in (await indexes.items.live(), await indexes.skills.live()):
        await indexes.make_live(card.fingerprint)
    return await _opened(indexes, known, card)


@dataclass(frozen=True)
class Readable:
    items: Index
    skills: Index


async def open_for_reading(indexes: IndexPair, card: IndexCard) -> Readable:
    """The live indexes, when they were made with this card; they are held on to when others become live."""
    await _require_live(indexes, card)
    return Readable(await indexes.items.open(card), await indexes.skills.open(card))


async def open_for_doctor(indexes: IndexPair, dirty: DirtySet, card: IndexCard) -> Opened:
    """The live index and the generation that follows it, which is the one of the same fingerprint."""
    followed, skills = await open_skills(indexes, dirty, card)
    return Opened(followed, await indexes.items.open(card), skills)


async def open_skills(indexes: IndexPair, dirty: DirtySet, card: IndexCard) -> tuple[Generation, Index]:
    """The same for who writes skills only."""
    await _require_live(indexes, card)
    followed = await _generation_of(dirty, card)
    if followed is None:
        raise SetupError("nobody follows the live index", hint="run `toolscript reindex` to build it anew")
    # An index of items can be older than skills are.
    await _make_skills(indexes, followed, card)
    return followed, await indexes.skills.open(card)


async def begin_reindex(
    indexes: IndexPair, dirty: DirtySet, card: IndexCard, on_progress: OnProgress = silent
) -> Opened:
    """An index with every item of the catalog waiting to go into it; what an earlier run has done is kept."""
    if await _generation_of(dirty, card) is None:
        # What a forgotten generation left behind would stay in the new one for ever.
        await indexes.drop(card.fingerprint)
    empty = not await indexes.items.size(card)
    generation = await dirty.begin(card.fingerprint, afresh=empty)
    if generation.state is GenerationState.LIVE and not empty:
        raise SetupError(
            "the index of this model is the live one already",
            hint="set TOOLSCRIPT_EMBEDDING_MODEL to another model; `toolscript doctor --repair` mends this one",
        )
    await _make_collections(indexes, dirty, generation, card)
    await fill(dirty, generation.id, on_progress)
    return await _opened(indexes, generation, card)


async def fill(dirty: DirtySet, generation: int, on_progress: OnProgress = silent) -> None:
    """Marks what a generation has yet to mark of the catalog: all of it, the rest of it, or nothing."""
    marked = 0
    while count := await dirty.fill(generation, FILL_BATCH):
        marked += count
        on_progress(Progress("mark", marked))


async def switch_to(indexes: IndexPair, dirty: DirtySet, generation: Generation) -> None:
    """Alias first: if we die in between, the next run finds the alias right and finishes the record."""
    if generation.fingerprint is None:
        raise SetupError("this generation has no index yet", hint="run `toolscript worker` to build it")
    await indexes.make_live(generation.fingerprint)
    await dirty.set_state(generation.id, GenerationState.LIVE)


async def drop_previous(indexes: IndexPair, dirty: DirtySet) -> list[str]:
    """Ends every generation that is no longer live, and its collection with it."""
    ended = [found for found in await dirty.generations() if found.state is GenerationState.PREVIOUS]
    for generation in ended:
        # The record first: a generation that is still recorded must have its collection.
        await dirty.forget(generation.id)
        if generation.fingerprint is not None:
            await indexes.drop(generation.fingerprint)
    return [generation.fingerprint or "" for generation in ended]


async def _require_live(indexes: IndexPair, card: IndexCard) -> None:
    live = await indexes.live()
    if live is None:
        raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
    if live != card.fingerprint:
        raise _mismatch(live, card)


async def _make_collections(indexes: IndexPair, dirty: DirtySet, generation: Generation, card: IndexCard) -> None:
    """The record first: whoever dies before the collection is made, or filled, leaves everything to be followed.

    A collection that is empty after items were followed was made by somebody else: nothing is in it of what was
    written to the one before.
    """
    await _make_skills(indexes, generation, card)
    size = await indexes.items.size(card)
    if size is None or (not size and await indexes.sums.has_counted(generation.id)):
        await dirty.begin(card.fingerprint, afresh=True)
    await indexes.items.create(card)


async def _make_skills(indexes: IndexPair, generation: Generation, card: IndexCard) -> None:
    if not await indexes.skills.size(card):
        await indexes.sums.all_behind(generation.id)
    await indexes.skills.create(card)


async def _opened(indexes: IndexPair, generation: Generation, card: IndexCard) -> Opened:
    return Opened(generation, await indexes.items.open(card), await indexes.skills.open(card))


async def _generation_of(dirty: DirtySet, card: IndexCard) -> Generation | None:
    return next(
        (generation for generation in await dirty.generations() if generation.fingerprint == card.fingerprint),
        None,
    )


def _mismatch(live: str, card: IndexCard) -> ModelMismatch:
    return ModelMismatch(
        f"the live index has fingerprint {live}; model {card.model.name} would make {card.fingerprint}",
        hint="set TOOLSCRIPT_EMBEDDING_MODEL back to the model of the index, "
        "or run `toolscript reindex` to build an index with this one",
        details={"live": live, "wanted": card.fingerprint, "model": card.model.name},
    )
