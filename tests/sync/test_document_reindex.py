"""A version of the documents' index is built beside the live one, while tenants write."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from toolscript.model.document_cards import DocumentCard
from toolscript.model.documents import Document
from toolscript.model.filters import NO_FILTERS
from toolscript.model.models import Matrix
from toolscript.model.tenancy import Caller, Tenant
from toolscript.sync.document_copying import DocumentCopy, Pace
from toolscript.sync.document_reindex import DocumentReindex
from toolscript.sync.documents import DocumentDesk, stored_document
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryDocumentVersions, MemoryTenants

TENANTS = [Tenant(name) for name in ("ann", "bob", "cid")]
OLD, NEW = HashEmbedder(), HashEmbedder(dimensions=32, name="other")


class Killed(Exception): ...


@dataclass
class Installation:
    """A live version with documents of three tenants, and an empty one beside it."""

    old: MemoryDocuments = field(default_factory=lambda: MemoryDocuments(DocumentCard(OLD.model), "old"))
    new: MemoryDocuments = field(default_factory=lambda: MemoryDocuments(DocumentCard(NEW.model), "new"))
    versions: MemoryDocumentVersions = field(default_factory=MemoryDocumentVersions)
    tenants: MemoryTenants = field(default_factory=MemoryTenants)
    live: list[str] = field(default_factory=lambda: ["old"])

    def desk(self, index: MemoryDocuments, embedder: HashEmbedder) -> DocumentDesk:
        return DocumentDesk(embedder, index, self.tenants, self.versions)

    async def put(self, tenant: Tenant, id_: str, text: str) -> None:
        index, embedder = (self.old, OLD) if self.live[-1] == "old" else (self.new, NEW)
        await self.desk(index, embedder).put(Caller(tenant), [Document(id_, text, {"lang": "en"})])

    async def remove(self, tenant: Tenant, id_: str) -> None:
        index, embedder = (self.old, OLD) if self.live[-1] == "old" else (self.new, NEW)
        await self.desk(index, embedder).remove(Caller(tenant), [id_])

    async def make_live(self, name: str) -> None:
        self.live.append(name)

    def reindex(self, embedder: HashEmbedder = NEW, *, back: bool = False) -> DocumentReindex:
        source, target = (self.new, self.old) if back else (self.old, self.new)
        copy = DocumentCopy(source, target, embedder, Pace(rest=0.0))
        return DocumentReindex(self.versions, self.tenants, copy, self.make_live, late_seconds=0.0)


async def filled(documents: int = 20) -> Installation:
    made = Installation()
    for tenant in TENANTS:
        for number in range(documents):
            await made.put(tenant, f"d{number}", f"text {number} of {tenant} " * (1 + number * 20))
    return made


async def texts(index: MemoryDocuments, tenant: Tenant) -> dict[str, tuple[str, int]]:
    """What a tenant has, with versions."""
    headers = await index.of(tenant).page("", 1_000, NO_FILTERS)
    found = {}
    for header in headers:
        stored = await stored_document(index.of(tenant), header.key)
        assert stored is not None
        found[header.id] = (stored.text, header.version)
    return found


async def require_equal(made: Installation) -> None:
    for tenant in TENANTS:
        assert await texts(made.new, tenant) == await texts(made.old, tenant)


async def test_every_document_is_copied_with_its_version_and_vectors_of_the_new_model() -> None:
    made = await filled()
    done = await made.reindex().build()
    await require_equal(made)
    assert made.live == ["old", "new"]
    assert (done.live, done.previous, done.passages) == ("new", "old", await made.old.passages())
    assert done.passages == await made.new.passages() > 60
    assert (done.reconciled, done.left_out) == (0, [])


class Interrupting(HashEmbedder):
    """Does something before some batch is embedded."""

    def __init__(self, at: int, do: Callable[[], Awaitable[None]]) -> None:
        super().__init__(dimensions=32, name="other")
        self._at = at
        self._do = do
        self._batches = 0

    async def embed_passages(self, texts: object) -> Matrix:
        self._batches += 1
        if self._batches == self._at:
            await self._do()
        return await super().embed_passages(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [1, 2, 4, 6, 9])
async def test_what_is_put_changed_and_removed_meanwhile_is_there_or_gone_afterwards(at: int) -> None:
    made = await filled()

    async def write() -> None:
        for tenant in TENANTS:
            await made.put(tenant, "d3", "shorter")
            await made.put(tenant, "new", "came while it was copied")
            await made.remove(tenant, "d5")

    await made.reindex(Interrupting(at, write)).build()
    await require_equal(made)
    for tenant in TENANTS:
        there = await texts(made.new, tenant)
        assert (there["d3"][0], there["new"][0]) == ("shorter", "came while it was copied")
        assert "d5" not in there


@pytest.mark.parametrize("at", range(1, 10, 2))
async def test_killed_anywhere_a_second_run_ends_with_the_same(at: int) -> None:
    made = await filled()

    async def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        await made.reindex(Interrupting(at, die)).build()
    assert made.live == ["old"]
    await made.put(TENANTS[0], "between", "put between two runs")
    await made.reindex().build()
    await require_equal(made)


async def test_a_write_that_was_not_recorded_is_found_by_comparing_everything() -> None:
    made = await filled()
    unrecorded = DocumentDesk(OLD, made.old, made.tenants)

    async def write() -> None:
        await unrecorded.put(Caller(TENANTS[0]), [Document("d1", "unrecorded", {}), Document("x", "one more", {})])
        await unrecorded.remove(Caller(TENANTS[0]), ["d2"])

    done = await made.reindex(Interrupting(9, write)).build()
    assert done.reconciled == 3
    await require_equal(made)


async def test_a_server_that_notices_late_loses_nothing() -> None:
    """It writes to the version before when the other is live already."""
    made = await filled()
    late = made.desk(made.old, OLD)

    async def make_live(name: str) -> None:
        made.live.append(name)
        await late.put(Caller(TENANTS[1]), [Document("late", "written late", {})])
        await late.remove(Caller(TENANTS[1]), ["d7", "d8"])
        await made.put(TENANTS[1], "d8", "newer, in the live one")
        # Put into the version before, removed from the live one, where it is not yet.
        await late.put(Caller(TENANTS[1]), [Document("short-lived", "put late", {})])
        await made.remove(TENANTS[1], "short-lived")

    copy = DocumentCopy(made.old, made.new, NEW, Pace(rest=0.0))
    reindex = DocumentReindex(made.versions, made.tenants, copy, make_live, late_seconds=0.05)
    await reindex.build()
    there = await texts(made.new, TENANTS[1])
    assert (there["late"][0], there["d8"][0]) == ("written late", "newer, in the live one")
    assert not {"d7", "short-lived"} & there.keys()


async def test_the_way_back_has_what_was_put_since() -> None:
    made = await filled()
    await made.reindex().build()
    await made.put(TENANTS[2], "after", "put after the switch")
    await made.put(TENANTS[2], "d1", "changed after the switch")
    await made.remove(TENANTS[2], "d2")
    await made.reindex(OLD, back=True).roll_back()
    assert made.live == ["old", "new", "old"]
    await require_equal(made)
    there = await texts(made.old, TENANTS[2])
    assert (there["after"][0], there["d1"][0]) == ("put after the switch", "changed after the switch")
    assert "d2" not in there


async def test_nothing_is_recorded_any_more_when_the_previous_version_is_gone() -> None:
    made = await filled()
    await made.reindex().build()
    await made.versions.forget("old")
    await made.put(TENANTS[0], "later", "text")
    assert (await made.versions.all(), await made.versions.pending("old")) == ([], 0)
