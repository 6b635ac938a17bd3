"""Contract of DocumentVersions: a change is recorded for the version that lacks it, until it is applied."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.conftest import PATIENCE
from tests.doubles import MemoryDocumentVersions
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.postgres.pool import open_pool
from toolscript.documents.model.points import DocumentVersion, FillPosition, VersionState
from toolscript.documents.ports import DocumentVersions
from toolscript.documents.postgres import PostgresDocumentVersions

pytestmark = pytest.mark.requirement("DOC-003")

ANN, BOB = Tenant("ann"), Tenant("bob")


@pytest.fixture(params=["memory", "postgres"])
async def versions(request: pytest.FixtureRequest) -> AsyncIterator[DocumentVersions]:
    if request.param == "memory":
        yield MemoryDocumentVersions()
        return
    async with open_pool(request.getfixturevalue("postgres_url"), size=2, wait_seconds=PATIENCE) as pool:
        yield PostgresDocumentVersions(pool)


async def states(versions: DocumentVersions) -> dict[str, VersionState]:
    return {version.name: version.state for version in await versions.all()}


async def keys(versions: DocumentVersions, target: str) -> Sequence[str]:
    return [change.key for change in await versions.changes(target, 100)]


async def write(versions: DocumentVersions, source: str, *document_keys: str, tenant: Tenant = ANN) -> None:
    await versions.mark(source, tenant, document_keys)
    await versions.written(source, tenant, document_keys)


async def test_the_first_write_puts_the_live_version_on_record_and_no_change(versions: DocumentVersions) -> None:
    assert await versions.all() == []
    assert await versions.mark("old", ANN, ["a", "b"])
    await versions.written("old", ANN, ["a", "b"])
    assert await states(versions) == {"old": VersionState.LIVE}
    assert (await keys(versions, "old"), await versions.pending("old")) == ([], 0)
    assert not await versions.mark("another", ANN, ["a"])


async def test_first_writes_at_once_agree_on_one_version(versions: DocumentVersions) -> None:
    marked = await asyncio.gather(*(versions.mark(name, ANN, ["a"]) for name in ("one", "two", "one", "two")))
    (live,) = await states(versions)
    assert list(marked) == [name == live for name in ("one", "two", "one", "two")]


async def test_an_empty_version_begins_alone_on_the_record(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await write(versions, "old", "a")
    await versions.begin_empty("empty")
    assert await states(versions) == {"empty": VersionState.LIVE}
    assert await versions.pending("new") == 0
    assert not await versions.mark("old", ANN, ["a"])
    assert await versions.mark("empty", ANN, ["a"])


async def test_a_write_in_one_version_is_recorded_for_the_other(versions: DocumentVersions) -> None:
    begun = await versions.begin("old", "new")
    assert begun == DocumentVersion("new", VersionState.BUILDING)
    assert await states(versions) == {"old": VersionState.LIVE, "new": VersionState.BUILDING}
    await write(versions, "old", "b", "a")
    await write(versions, "old", "a", tenant=BOB)
    assert not await versions.mark("new", ANN, ["c"])
    changes = await versions.changes("new", 100)
    assert sorted((change.tenant.name, change.key, change.source) for change in changes) == [
        ("ann", "a", "old"),
        ("ann", "b", "old"),
        ("bob", "a", "old"),
    ]
    assert await versions.pending("old") == 0


async def test_a_document_that_is_being_written_waits(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await versions.mark("old", ANN, ["a"])
    await versions.mark("old", ANN, ["a"])
    assert (await keys(versions, "new"), await versions.pending("new")) == ([], 1)
    await versions.written("old", ANN, ["a"])
    assert await keys(versions, "new") == []
    await versions.written("old", ANN, ["a"])
    assert await keys(versions, "new") == ["a"]


async def test_a_change_that_comes_again_is_not_cleared_with_the_first(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await write(versions, "old", "a", "b")
    first = await versions.changes("new", 100)
    await write(versions, "old", "b")
    await versions.clear(first)
    assert await keys(versions, "new") == ["b"]
    await versions.clear(await versions.changes("new", 100))
    await versions.clear([])
    assert await versions.pending("new") == 0


async def test_changes_come_in_the_order_of_their_writes_and_in_pages(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    for key in ("c", "a", "b"):
        await write(versions, "old", key)
    assert [change.key for change in await versions.changes("new", 2)] == ["c", "a"]


async def test_a_position_is_stored_and_a_second_begin_resumes_there(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await versions.advance("new", FillPosition("ann", "a"))
    assert (await versions.begin("old", "new")).position == FillPosition("ann", "a")
    await versions.advance("new", FillPosition(done=True))
    assert (await versions.begin("old", "new")).position.done


async def test_a_switch_and_a_rollback_exchange_the_versions(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await versions.switch("new")
    await versions.switch("new")
    assert await states(versions) == {"old": VersionState.PREVIOUS, "new": VersionState.LIVE}
    await versions.switch("old")
    assert await states(versions) == {"old": VersionState.LIVE, "new": VersionState.PREVIOUS}
    with pytest.raises(NotFound):
        await versions.switch("other")


async def test_a_third_version_is_refused(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    with pytest.raises(Conflict):
        await versions.begin("old", "another")
    await versions.switch("new")
    with pytest.raises(Conflict):
        await versions.begin("new", "another")


async def test_deleting_a_version_deletes_its_changes(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await write(versions, "old", "a")
    await versions.forget("new")
    assert (await states(versions), await versions.pending("new")) == ({"old": VersionState.LIVE}, 0)
    await write(versions, "old", "b")
    await versions.begin("old", "new")
    assert await versions.pending("new") == 0


async def test_one_holder_at_a_time(versions: DocumentVersions) -> None:
    assert await versions.hold("first", 60)
    assert not await versions.hold("second", 60)
    assert await versions.hold("first", 60)
    await versions.release("second")
    assert not await versions.hold("second", 60)
    await versions.release("first")
    assert await versions.hold("second", 0.0)
    assert await versions.hold("first", 60)


async def test_after_a_switch_no_writer_can_mark_the_previous_version(versions: DocumentVersions) -> None:
    assert await versions.mark("old", ANN, ["a"])
    await versions.begin("old", "new")
    assert await versions.mark("old", ANN, ["a"])
    await versions.switch("new")
    assert not await versions.mark("old", ANN, ["b"])
    assert await versions.mark("new", ANN, ["b"])
    assert (await versions.pending("new"), await versions.pending("old")) == (1, 1)
    await versions.switch("old")
    assert await versions.mark("old", ANN, ["c"])
    assert not await versions.mark("new", ANN, ["c"])


async def test_a_write_that_began_before_the_other_version_is_recorded_at_its_end(
    versions: DocumentVersions,
) -> None:
    await versions.mark("old", ANN, ["a"])
    await versions.begin("old", "new")
    await versions.written("old", ANN, ["a"])
    assert await keys(versions, "new") == ["a"]
