"""A version of the documents' index is built beside the live one, while tenants write."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest

from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.errors import Conflict, IndexReplaced
from toolscript.core.retrieval.model import Matrix
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents import reindex as document_reindex
from toolscript.documents.model.document import Document, document_key
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.ports import DocumentVersions
from toolscript.documents.reindex import DocumentCopy, DocumentReindex, Sample
from toolscript.documents.service import DocumentService, stored_document
from toolscript.documents.throttle import Throttle
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryDocumentVersions, MemoryTenants

pytestmark = pytest.mark.slow

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

    def service(self, index: MemoryDocuments, embedder: HashEmbedder) -> DocumentService:
        return DocumentService(embedder, index, self.tenants, self.versions)

    async def put(self, tenant: Tenant, id_: str, text: str) -> None:
        index, embedder = (self.old, OLD) if self.live[-1] == "old" else (self.new, NEW)
        await self.service(index, embedder).put(Principal(tenant), [Document(id_, text, {"lang": "en"})])

    async def remove(self, tenant: Tenant, id_: str) -> None:
        index, embedder = (self.old, OLD) if self.live[-1] == "old" else (self.new, NEW)
        await self.service(index, embedder).remove(Principal(tenant), [id_])

    async def make_live(self, name: str) -> None:
        self.live.append(name)

    def reindex(self, embedder: HashEmbedder = NEW, *, back: bool = False) -> DocumentReindex:
        source, target = (self.new, self.old) if back else (self.old, self.new)
        copy = DocumentCopy(source, target, embedder, Throttle(rest=0.0))
        return DocumentReindex(self.versions, self.tenants, copy, self.make_live)


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
    assert (done.reconciled, done.verified, done.left_out) == (0, 60, [])


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
    unrecorded = DocumentService(OLD, made.old, made.tenants)

    async def write() -> None:
        await unrecorded.put(
            Principal(TENANTS[0]), [Document("d1", "unrecorded", {}), Document("x", "one more", {})]
        )
        await unrecorded.remove(Principal(TENANTS[0]), ["d2"])

    done = await made.reindex(Interrupting(9, write)).build()
    assert done.reconciled == 3
    await require_equal(made)


async def test_what_is_written_all_the_time_keeps_nothing_from_coming_to_its_end() -> None:
    made = await filled()

    class Busy(DocumentCopy):
        """Somebody writes before each tenant is compared."""

        async def reconcile(self, tenant: Tenant, sample: Sample, versions: DocumentVersions) -> int:
            await made.put(TENANTS[0], "d1", f"written again, {next(numbers)}")
            await made.remove(TENANTS[1], f"d{next(numbers)}")
            return await super().reconcile(tenant, sample, versions)

    numbers = count(3)
    copy = Busy(made.old, made.new, NEW, Throttle(rest=0.0))
    done = await DocumentReindex(made.versions, made.tenants, copy, made.make_live).build()
    assert (done.reconciled, done.caught_up > 0) == (0, True)
    await require_equal(made)


async def test_a_server_that_notices_late_is_not_let_in() -> None:
    made = await filled()
    late = made.service(made.old, OLD)
    await made.reindex().build()
    before = await texts(made.old, TENANTS[1])
    with pytest.raises(IndexReplaced):
        await late.put(Principal(TENANTS[1]), [Document("late", "written late", {})])
    with pytest.raises(IndexReplaced):
        await late.remove(Principal(TENANTS[1]), ["d7"])
    assert await texts(made.old, TENANTS[1]) == before
    assert await made.versions.pending("new") == 0


async def test_a_write_that_was_let_in_before_the_switch_and_ends_after_it_is_not_lost() -> None:
    made = await filled()
    tenant = TENANTS[1]
    plain = DocumentService(OLD, made.old, made.tenants)
    written, removed = ["late", "short-lived"], ["d7", "d8"]
    keys = [document_key(tenant, id_) for id_ in (*written, *removed)]

    async def let_in() -> None:
        assert await made.versions.mark("old", tenant, keys)

    async def make_live(name: str) -> None:
        made.live.append(name)
        await plain.put(Principal(tenant), [Document(id_, "written late", {}) for id_ in written])
        await plain.remove(Principal(tenant), removed)
        await made.versions.written("old", tenant, keys)
        # In the live one since: a newer text, and the end of what is not there yet.
        await made.put(tenant, "d8", "newer, in the live one")
        await made.remove(tenant, "short-lived")

    copy = DocumentCopy(made.old, made.new, Interrupting(3, let_in), Throttle(rest=0.0))
    await DocumentReindex(made.versions, made.tenants, copy, make_live).build()
    there = await texts(made.new, tenant)
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


class Silent(HashEmbedder):
    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise AssertionError(f"{len(texts)} texts are embedded")


class Forgetful(HashEmbedder):
    """Has the vectors of some other model at first."""

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        right = await super().embed_passages(texts)
        self.batches = getattr(self, "batches", 0) + 1
        return right[:, ::-1] if self.batches == 3 else right


async def test_vectors_that_are_wrong_are_found_before_anybody_searches_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document_reindex, "SAMPLE", 1_000)
    made = await filled()
    with pytest.raises(Conflict, match="not in the new index as they should be"):
        await made.reindex(Forgetful(dimensions=32, name="other")).build()
    assert made.live == ["old"]


async def test_between_two_of_one_model_vectors_are_copied_and_nothing_is_embedded() -> None:
    made = await filled()
    again = MemoryDocuments(DocumentCard(OLD.model), "again")
    copy = DocumentCopy(made.old, again, Silent(), Throttle(rest=0.0))
    headers = await made.old.of(TENANTS[0]).page("", 1_000, NO_FILTERS)
    assert await copy.restore(TENANTS[0], await copy.whole(TENANTS[0], headers)) > len(headers)
    ids = [ChunkId(one.key, number) for one in headers for number in range(one.passages)]
    before, after = [await one.of(TENANTS[0]).vectors(ids) for one in (made.old, again)]
    assert {id_: list(vector) for id_, vector in after.items()} == {id_: list(one) for id_, one in before.items()}


async def test_nothing_is_recorded_any_more_when_the_previous_version_is_gone() -> None:
    made = await filled()
    await made.reindex().build()
    await made.versions.forget("old")
    await made.put(TENANTS[0], "later", "text")
    assert (await made.versions.all(), await made.versions.pending("old")) == ([], 0)
