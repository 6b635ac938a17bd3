"""Building a version of the document index beside the live one while tenants write."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest

from tests.doubles import MemoryDocumentVersions
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
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryTenants

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
    installation = Installation()
    for tenant in TENANTS:
        for number in range(documents):
            await installation.put(tenant, f"d{number}", f"text {number} of {tenant} " * (1 + number * 20))
    return installation


async def texts(index: MemoryDocuments, tenant: Tenant) -> dict[str, tuple[str, int]]:
    """Return the texts of a tenant by id, with versions."""
    headers = await index.of(tenant).page("", 1_000, NO_FILTERS)
    by_id = {}
    for header in headers:
        stored = await stored_document(index.of(tenant), header.key)
        assert stored is not None
        by_id[header.id] = (stored.text, header.version)
    return by_id


async def require_equal(installation: Installation) -> None:
    for tenant in TENANTS:
        assert await texts(installation.new, tenant) == await texts(installation.old, tenant)


async def test_every_document_is_copied_with_its_version_and_vectors_of_the_new_model() -> None:
    installation = await filled()
    done = await installation.reindex().build()
    await require_equal(installation)
    assert installation.live == ["old", "new"]
    assert (done.live, done.previous, done.passages) == ("new", "old", await installation.old.passages())
    assert done.passages == await installation.new.passages() > 60
    assert (done.reconciled, done.verified, done.left_out) == (0, 60, [])


class Interrupting(HashEmbedder):
    """Runs a hook before the given batch is embedded."""

    def __init__(self, batch: int, do: Callable[[], Awaitable[None]]) -> None:
        super().__init__(dimensions=32, name="other")
        self._batch = batch
        self._do = do
        self._batches = 0

    async def embed_texts(self, texts: object) -> Matrix:
        self._batches += 1
        if self._batches == self._batch:
            await self._do()
        return await super().embed_texts(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 2, 4, 6, 9])
async def test_concurrent_puts_updates_and_removals_reach_the_new_version(batch: int) -> None:
    installation = await filled()

    async def write() -> None:
        for tenant in TENANTS:
            await installation.put(tenant, "d3", "shorter")
            await installation.put(tenant, "new", "came while it was copied")
            await installation.remove(tenant, "d5")

    await installation.reindex(Interrupting(batch, write)).build()
    await require_equal(installation)
    for tenant in TENANTS:
        stored = await texts(installation.new, tenant)
        assert (stored["d3"][0], stored["new"][0]) == ("shorter", "came while it was copied")
        assert "d5" not in stored


@pytest.mark.parametrize("batch", range(1, 10, 2))
async def test_after_a_kill_anywhere_a_second_run_gives_the_same_result(batch: int) -> None:
    installation = await filled()

    async def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        await installation.reindex(Interrupting(batch, die)).build()
    assert installation.live == ["old"]
    await installation.put(TENANTS[0], "between", "put between two runs")
    await installation.reindex().build()
    await require_equal(installation)


async def test_a_write_that_was_not_recorded_is_found_by_comparing_everything() -> None:
    installation = await filled()
    unrecorded = DocumentService(OLD, installation.old, installation.tenants)

    async def write() -> None:
        await unrecorded.put(
            Principal(TENANTS[0]), [Document("d1", "unrecorded", {}), Document("x", "one more", {})]
        )
        await unrecorded.remove(Principal(TENANTS[0]), ["d2"])

    done = await installation.reindex(Interrupting(9, write)).build()
    assert done.reconciled == 3
    await require_equal(installation)


async def test_continuous_writes_do_not_keep_a_reindex_from_finishing() -> None:
    installation = await filled()

    class Busy(DocumentCopy):
        """A client writes before each tenant is compared."""

        async def reconcile(self, tenant: Tenant, sample: Sample, versions: DocumentVersions) -> int:
            await installation.put(TENANTS[0], "d1", f"written again, {next(numbers)}")
            await installation.remove(TENANTS[1], f"d{next(numbers)}")
            return await super().reconcile(tenant, sample, versions)

    numbers = count(3)
    copy = Busy(installation.old, installation.new, NEW, Throttle(rest=0.0))
    done = await DocumentReindex(installation.versions, installation.tenants, copy, installation.make_live).build()
    assert (done.reconciled, done.caught_up > 0) == (0, True)
    await require_equal(installation)


async def test_a_server_that_misses_the_switch_cannot_write() -> None:
    installation = await filled()
    late = installation.service(installation.old, OLD)
    await installation.reindex().build()
    before = await texts(installation.old, TENANTS[1])
    with pytest.raises(IndexReplaced):
        await late.put(Principal(TENANTS[1]), [Document("late", "written late", {})])
    with pytest.raises(IndexReplaced):
        await late.remove(Principal(TENANTS[1]), ["d7"])
    assert await texts(installation.old, TENANTS[1]) == before
    assert await installation.versions.pending("new") == 0


async def test_a_write_that_starts_before_the_switch_and_ends_after_it_is_not_lost() -> None:
    installation = await filled()
    tenant = TENANTS[1]
    plain = DocumentService(OLD, installation.old, installation.tenants)
    written, removed = ["late", "short-lived"], ["d7", "d8"]
    keys = [document_key(tenant, id_) for id_ in (*written, *removed)]

    async def mark_write() -> None:
        assert await installation.versions.mark("old", tenant, keys)

    async def make_live(name: str) -> None:
        installation.live.append(name)
        await plain.put(Principal(tenant), [Document(id_, "written late", {}) for id_ in written])
        await plain.remove(Principal(tenant), removed)
        await installation.versions.written("old", tenant, keys)
        # Later writes in the live version: a newer text, and the removal of a document that is not copied yet.
        await installation.put(tenant, "d8", "newer, in the live one")
        await installation.remove(tenant, "short-lived")

    copy = DocumentCopy(installation.old, installation.new, Interrupting(3, mark_write), Throttle(rest=0.0))
    await DocumentReindex(installation.versions, installation.tenants, copy, make_live).build()
    stored = await texts(installation.new, tenant)
    assert (stored["late"][0], stored["d8"][0]) == ("written late", "newer, in the live one")
    assert not {"d7", "short-lived"} & stored.keys()


async def test_a_rollback_has_the_documents_put_since() -> None:
    installation = await filled()
    await installation.reindex().build()
    await installation.put(TENANTS[2], "after", "put after the switch")
    await installation.put(TENANTS[2], "d1", "changed after the switch")
    await installation.remove(TENANTS[2], "d2")
    await installation.reindex(OLD, back=True).roll_back()
    assert installation.live == ["old", "new", "old"]
    await require_equal(installation)
    stored = await texts(installation.old, TENANTS[2])
    assert (stored["after"][0], stored["d1"][0]) == ("put after the switch", "changed after the switch")
    assert "d2" not in stored


class NeverEmbeds(HashEmbedder):
    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        raise AssertionError(f"{len(texts)} texts are embedded")


class WrongOnce(HashEmbedder):
    """Returns wrong vectors for one batch."""

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        right = await super().embed_texts(texts)
        self.batches = getattr(self, "batches", 0) + 1
        return right[:, ::-1] if self.batches == 3 else right


async def test_wrong_vectors_are_detected_before_the_switch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document_reindex, "SAMPLE", 1_000)
    installation = await filled()
    with pytest.raises(Conflict, match="not in the new index as they should be"):
        await installation.reindex(WrongOnce(dimensions=32, name="other")).build()
    assert installation.live == ["old"]


async def test_between_versions_of_one_model_vectors_are_copied_and_nothing_is_embedded() -> None:
    installation = await filled()
    again = MemoryDocuments(DocumentCard(OLD.model), "again")
    copy = DocumentCopy(installation.old, again, NeverEmbeds(), Throttle(rest=0.0))
    headers = await installation.old.of(TENANTS[0]).page("", 1_000, NO_FILTERS)
    assert await copy.restore(TENANTS[0], await copy.whole(TENANTS[0], headers)) > len(headers)
    ids = [ChunkId(header.key, number) for header in headers for number in range(header.passages)]
    before, after = [await index.of(TENANTS[0]).vectors(ids) for index in (installation.old, again)]
    assert {id_: list(vector) for id_, vector in after.items()} == {
        id_: list(vector) for id_, vector in before.items()
    }


async def test_no_change_is_recorded_any_more_when_the_previous_version_is_gone() -> None:
    installation = await filled()
    await installation.reindex().build()
    await installation.versions.forget("old")
    await installation.put(TENANTS[0], "later", "text")
    (live,) = await installation.versions.all()
    assert (live.name, str(live.state), await installation.versions.pending("old")) == ("new", "live", 0)
