"""Contract of libraries about sources in a folder."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.library_builders import Shelf, a_source

pytestmark = pytest.mark.requirement("KN-005")

# Short names of special characters, so that one is often a prefix of another.
_NAMES = st.text(st.sampled_from("ab.*%$^é/0\U0001f375\\[(+?"), min_size=1, max_size=4)
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))


async def test_a_folder_is_not_one_whose_name_goes_on(shelf: Shelf) -> None:
    for path in ("/a/b", "/a/b/c", "/a/b/d/e", "/a/bc", "/a/b0", "/a/b c", "/a/b.md", "/a/B/c", "/b/a/b/c"):
        await shelf.holds(a_source(path))
    assert await shelf.paths_under("/a/b") == ["/a/b/c", "/a/b/d/e"]
    assert await shelf.paths_under("/a/b/") == await shelf.paths_under("/a/b//") == ["/a/b/c", "/a/b/d/e"]
    assert await shelf.paths_under("/a/b/c") == await shelf.paths_under("/z") == []
    assert len(await shelf.paths_under("/a")) == 8
    assert len(await shelf.paths_under("/")) == len(await shelf.paths_under("")) == 9


@pytest.mark.parametrize("folder", ["/a.b", "/a*", "/a%2F", "/^a", "/a$", "/[a]", "/茶", "/a b", "/a\\", "/.*"])
async def test_characters_that_mean_something_elsewhere_mean_themselves(shelf: Shelf, folder: str) -> None:
    inside, beside = f"{folder}/x.md", "/ax/b/x.md"
    await shelf.holds(a_source(inside))
    await shelf.holds(a_source(beside))
    assert await shelf.paths_under(folder) == [inside]
    assert [*await shelf.writer.known([inside, folder])] == [inside]


async def test_a_folder_is_walked_in_order_of_path_and_only_the_last_page_is_short(shelf: Shelf) -> None:
    paths = [f"/notes/{name}" for name in ("z", "a/z", "a", "a-b", "é", "B", "\U0001f375", "\uffee")]
    for path in paths:
        await shelf.holds(a_source(path))
    await shelf.holds(a_source("/other/file"))
    seen: list[str] = []
    sizes = []
    while page := await shelf.writer.known_under("/notes", seen[-1] if seen else "", 3):
        seen += [existing.source.path for existing in page]
        sizes.append(len(page))
    assert seen == sorted(paths)
    assert sizes == [3, 3, 2]
    assert await shelf.writer.known_under("/notes", "", 0) == []


async def test_the_position_in_another_folder_does_not_affect_this_one(shelf: Shelf) -> None:
    await shelf.holds(a_source("/m/x"))
    assert [item.source.path for item in await shelf.writer.known_under("/m", "/a/z", 9)] == ["/m/x"]
    assert await shelf.writer.known_under("/m", "/z", 9) == []


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=st.lists(_PATHS, max_size=6, unique=True), folder=_PATHS)
async def test_in_a_folder_is_what_begins_with_its_name_and_a_slash(
    shelf: Shelf, paths: list[str], folder: str
) -> None:
    for path in await shelf.paths_under(""):
        await shelf.writer.remove_source(a_source(path).id)
    for path in paths:
        await shelf.holds(a_source(path))
    begins = folder.rstrip("/") + "/"
    assert await shelf.paths_under(folder) == sorted(
        path for path in paths if path.startswith(begins) and path != begins
    )
