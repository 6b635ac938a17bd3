"""Index versions of items and skills: opening them, and the switch from one model to another."""

from dataclasses import dataclass

from toolscript.core.errors import ModelMismatch, SetupError
from toolscript.core.retrieval.late_index import LateIndex
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.namespaced import NamespacedIndex
from toolscript.core.retrieval.ports import Index, Indexes
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.catalog import IndexVersion, IndexVersionState
from toolscript.tools.ports import DirtySet, SkillVectors

FILL_BATCH = 5_000


@dataclass(frozen=True)
class IndexPair:
    """The collections of items and skills: created, aliased and dropped together. `sums` holds the centroids."""

    items: Indexes
    skills: Indexes
    sums: SkillVectors

    async def live(self) -> str | None:
        return await self.items.live()

    async def make_live(self, fingerprint: str) -> None:
        """Move both aliases, skills first: a process that opens the items then finds their skills."""
        await self.skills.make_live(fingerprint)
        await self.items.make_live(fingerprint)

    async def drop(self, fingerprint: str) -> None:
        await self.items.drop(fingerprint)
        await self.skills.drop(fingerprint)


@dataclass(frozen=True)
class Opened:
    index_version: IndexVersion
    index: NamespacedIndex
    skills: NamespacedIndex


async def open_for_writing(indexes: IndexPair, dirty: DirtySet, card: IndexCard) -> Opened:
    """Open the index version of this model for its worker. The very first worker sets the model."""
    live = await dirty.adopt(card.fingerprint)
    index_version = await _index_version_of(dirty, card)
    if index_version is None:
        raise _mismatch(live.fingerprint or "?", card)
    await _make_collections(indexes, dirty, index_version, card)
    await fill(dirty, index_version.id)
    if index_version.id == live.id and None in (await indexes.items.live(), await indexes.skills.live()):
        await indexes.make_live(card.fingerprint)
    return await _open(indexes, index_version, card)


@dataclass(frozen=True)
class Readable:
    items: NamespacedIndex
    skills: NamespacedIndex


async def open_for_reading(indexes: IndexPair, card: IndexCard) -> Readable:
    """Open the live indexes, if they were built with this model; they stay open when others become live."""
    await _require_live(indexes, card)
    return Readable(*await _both(indexes, card))


def open_later(indexes: IndexPair, card: IndexCard) -> Readable:
    """Return the same indexes before they can be opened; each is opened by the first search that can."""

    def late(of: Indexes) -> NamespacedIndex:
        async def open_live() -> Index:
            await _require_live(indexes, card)
            return await of.open(card)

        return NamespacedIndex(of, LateIndex(card, open_live))

    return Readable(late(indexes.items), late(indexes.skills))


async def open_for_doctor(indexes: IndexPair, dirty: DirtySet, card: IndexCard) -> Opened:
    """Open the live index and its index version, the one with the same fingerprint."""
    index_version, skills = await open_skills(indexes, dirty, card)
    return Opened(index_version, await NamespacedIndex.open(indexes.items, card), skills)


async def open_skills(
    indexes: IndexPair, dirty: DirtySet, card: IndexCard
) -> tuple[IndexVersion, NamespacedIndex]:
    """Open the live index of skills and its index version, for a process that writes only skills."""
    await _require_live(indexes, card)
    index_version = await _index_version_of(dirty, card)
    if index_version is None:
        raise SetupError("the live index has no record", hint="run `toolscript reindex` to rebuild it")
    # An index of items may have been built before skills existed.
    await _make_skills(indexes, index_version, card)
    return index_version, await NamespacedIndex.open(indexes.skills, card)


async def begin_reindex(
    indexes: IndexPair, dirty: DirtySet, card: IndexCard, on_progress: OnProgress = silent
) -> Opened:
    """Start an index version with every item of the catalog dirty. Resumes an earlier run."""
    if await _index_version_of(dirty, card) is None:
        # Points of a deleted index version would stay in the new one forever.
        await indexes.drop(card.fingerprint)
    empty = not await indexes.items.size(card)
    index_version = await dirty.begin(card.fingerprint, afresh=empty)
    if index_version.state is IndexVersionState.LIVE and not empty:
        raise SetupError(
            "the live index was built with this model already",
            hint="set TOOLSCRIPT_EMBEDDING_MODEL to another model; `toolscript doctor --repair` repairs this one",
        )
    await _make_collections(indexes, dirty, index_version, card)
    await fill(dirty, index_version.id, on_progress)
    return await _open(indexes, index_version, card)


async def fill(dirty: DirtySet, index_version: int, on_progress: OnProgress = silent) -> None:
    """Mark the items of the catalog dirty that are not marked yet for an index version."""
    marked = 0
    while count := await dirty.fill(index_version, FILL_BATCH):
        marked += count
        on_progress(Progress("mark", marked))


async def switch_to(indexes: IndexPair, dirty: DirtySet, index_version: IndexVersion) -> None:
    """Move the alias first: if the process dies in between, the next run completes the record."""
    if index_version.fingerprint is None:
        raise SetupError("this index version has no index yet", hint="run `toolscript worker` to build it")
    await indexes.make_live(index_version.fingerprint)
    await dirty.set_state(index_version.id, IndexVersionState.LIVE)


async def drop_previous(indexes: IndexPair, dirty: DirtySet) -> list[str]:
    """Delete every index version that is no longer live, with its collections."""
    previous = [version for version in await dirty.index_versions() if version.state is IndexVersionState.PREVIOUS]
    for index_version in previous:
        # The record first: a recorded index version must have its collections.
        await dirty.forget(index_version.id)
        if index_version.fingerprint is not None:
            await indexes.drop(index_version.fingerprint)
    return [index_version.fingerprint or "" for index_version in previous]


async def _require_live(indexes: IndexPair, card: IndexCard) -> None:
    live = await indexes.live()
    if live is None:
        raise SetupError("there is no index yet", hint="`toolscript serve` builds it, or `toolscript worker`")
    if live != card.fingerprint:
        raise _mismatch(live, card)


async def _make_collections(
    indexes: IndexPair, dirty: DirtySet, index_version: IndexVersion, card: IndexCard
) -> None:
    """Update the record first: if the process dies before the collection is created or filled, all is dirty.

    A collection that is empty after items were indexed was recreated: the points of the one before are lost.
    """
    await _make_skills(indexes, index_version, card)
    size = await indexes.items.size(card)
    if size is None or (not size and await indexes.sums.has_counted(index_version.id)):
        await dirty.begin(card.fingerprint, afresh=True)
    await indexes.items.create(card)


async def _make_skills(indexes: IndexPair, index_version: IndexVersion, card: IndexCard) -> None:
    if not await indexes.skills.size(card):
        await indexes.sums.all_behind(index_version.id)
    await indexes.skills.create(card)


async def _open(indexes: IndexPair, index_version: IndexVersion, card: IndexCard) -> Opened:
    return Opened(index_version, *await _both(indexes, card))


async def _both(indexes: IndexPair, card: IndexCard) -> tuple[NamespacedIndex, NamespacedIndex]:
    return await NamespacedIndex.open(indexes.items, card), await NamespacedIndex.open(indexes.skills, card)


async def _index_version_of(dirty: DirtySet, card: IndexCard) -> IndexVersion | None:
    return next(
        (
            index_version
            for index_version in await dirty.index_versions()
            if index_version.fingerprint == card.fingerprint
        ),
        None,
    )


def _mismatch(live: str, card: IndexCard) -> ModelMismatch:
    return ModelMismatch(
        f"the live index has fingerprint {live}; model {card.model.name} would make {card.fingerprint}",
        hint="set TOOLSCRIPT_EMBEDDING_MODEL back to the model of the index, "
        "or run `toolscript reindex` to build an index with this one",
        details={"live": live, "wanted": card.fingerprint, "model": card.model.name},
    )
