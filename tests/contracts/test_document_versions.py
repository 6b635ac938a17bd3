"""What every DocumentVersions promises: a change is known to the version that lacks it, until it is done."""

from collections.abc import AsyncIterator, Sequence

import pytest

from tests.conftest import PATIENCE
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.postgres.pool import open_pool
from toolscript.documents.model.points import DocumentVersion, FillPosition, VersionState
from toolscript.documents.ports import DocumentVersions
from toolscript.documents.postgres import PostgresDocumentVersions
from toolscript.testing import MemoryDocumentVersions

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
    return {one.name: one.state for one in await versions.all()}


async def keys(versions: DocumentVersions, target: str) -> Sequence[str]:
    return [one.key for one in await versions.changes(target, 100)]


async def write(versions: DocumentVersions, source: str, *named: str, tenant: Tenant = ANN) -> None:
    await versions.mark(source, tenant, named)
    await versions.written(source, tenant, named)


async def test_with_a_single_version_nothing_is_recorded(versions: DocumentVersions) -> None:
    await write(versions, "old", "a", "b")
    assert (await versions.all(), await keys(versions, "old"), await versions.pending("old")) == ([], [], 0)


async def test_what_is_written_in_one_version_is_recorded_for_the_other(versions: DocumentVersions) -> None:
    begun = await versions.begin("old", "new")
    assert begun == DocumentVersion("new", VersionState.BUILDING)
    assert await states(versions) == {"old": VersionState.LIVE, "new": VersionState.BUILDING}
    await write(versions, "old", "b", "a")
    await write(versions, "old", "a", tenant=BOB)
    assert not await versions.mark("new", ANN, ["c"])
    changes = await versions.changes("new", 100)
    assert sorted((one.tenant.name, one.key, one.source) for one in changes) == [
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
    assert [one.key for one in await versions.changes("new", 2)] == ["c", "a"]


async def test_a_position_is_kept_and_begun_again_it_goes_on(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await versions.advance("new", FillPosition("ann", "a"))
    assert (await versions.begin("old", "new")).position == FillPosition("ann", "a")
    await versions.advance("new", FillPosition(done=True))
    assert (await versions.begin("old", "new")).position.done


async def test_a_switch_and_a_way_back_change_places(versions: DocumentVersions) -> None:
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


async def test_a_version_that_is_forgotten_takes_its_changes_with_it(versions: DocumentVersions) -> None:
    await versions.begin("old", "new")
    await write(versions, "old", "a")
    await versions.forget("new")
    assert (await versions.all(), await versions.pending("new")) == ([], 0)
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


async def test_after_a_switch_nobody_is_let_in_to_the_version_before(versions: DocumentVersions) -> None:
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


async def test_who_began_before_there_was_another_version_is_recorded_at_the_end(
    versions: DocumentVersions,
) -> None:
    await versions.mark("old", ANN, ["a"])
    await versions.begin("old", "new")
    await versions.written("old", ANN, ["a"])
    assert await keys(versions, "new") == ["a"]
