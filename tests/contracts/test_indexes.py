"""Contract of Indexes: collections by fingerprint, one of them live."""

import pytest

from tests.contracts.builders import CARD, OTHER_CARD, point
from toolscript.core.errors import SetupError
from toolscript.core.retrieval.ports import Indexes

pytestmark = pytest.mark.requirement("SK-003", "DOC-003")


async def test_at_first_nothing_is_live(some_indexes: Indexes) -> None:
    assert await some_indexes.live() is None


async def test_creating_makes_nothing_live(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    assert await some_indexes.live() is None


async def test_the_live_index_knows_its_model(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    assert await some_indexes.origin() is None
    await some_indexes.make_live(CARD.fingerprint)
    origin = await some_indexes.origin()
    assert origin is not None
    assert (origin.model, origin.collection[-12:]) == (CARD.model, CARD.fingerprint)


async def test_creating_again_keeps_what_is_there(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await (await some_indexes.open(CARD)).put([point(1)])
    await some_indexes.create(CARD)
    assert await (await some_indexes.open(CARD)).count() == 1


async def test_the_size_distinguishes_an_empty_collection_from_a_missing_one(some_indexes: Indexes) -> None:
    assert await some_indexes.size(CARD) is None
    await some_indexes.create(CARD)
    assert await some_indexes.size(CARD) == 0
    await (await some_indexes.open(CARD)).put([point(1)])
    assert await some_indexes.size(CARD) == 1


async def test_an_opened_index_knows_its_card(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    assert (await some_indexes.open(CARD)).card == CARD


async def test_opening_what_is_absent_is_refused_with_the_command_that_makes_it(some_indexes: Indexes) -> None:
    await some_indexes.create(OTHER_CARD)
    with pytest.raises(SetupError) as refused:
        await some_indexes.open(CARD)
    assert "toolscript worker" in refused.value.hint


async def test_live_moves_from_one_index_to_another(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.create(OTHER_CARD)
    await some_indexes.make_live(CARD.fingerprint)
    assert await some_indexes.live() == CARD.fingerprint
    await some_indexes.make_live(OTHER_CARD.fingerprint)
    assert await some_indexes.live() == OTHER_CARD.fingerprint


async def test_making_the_live_index_live_again_changes_nothing(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.make_live(CARD.fingerprint)
    await some_indexes.make_live(CARD.fingerprint)
    assert await some_indexes.live() == CARD.fingerprint


async def test_what_is_absent_cannot_go_live_and_the_live_one_stays(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.make_live(CARD.fingerprint)
    with pytest.raises(SetupError):
        await some_indexes.make_live(OTHER_CARD.fingerprint)
    assert await some_indexes.live() == CARD.fingerprint


async def test_two_indexes_hold_their_own_points(some_indexes: Indexes) -> None:
    for card, count in ((CARD, 1), (OTHER_CARD, 2)):
        await some_indexes.create(card)
        await (await some_indexes.open(card)).put([point(number + 1) for number in range(count)])
    assert await (await some_indexes.open(CARD)).count() == 1
    assert await (await some_indexes.open(OTHER_CARD)).count() == 2


async def test_a_dropped_index_is_gone_and_the_others_are_not(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.create(OTHER_CARD)
    await some_indexes.drop(CARD.fingerprint)
    with pytest.raises(SetupError):
        await some_indexes.open(CARD)
    assert await (await some_indexes.open(OTHER_CARD)).count() == 0


async def test_an_index_may_be_dropped_twice(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.drop(CARD.fingerprint)
    await some_indexes.drop(CARD.fingerprint)
    with pytest.raises(SetupError):
        await some_indexes.open(CARD)


async def test_dropping_the_live_index_leaves_none_live(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await some_indexes.make_live(CARD.fingerprint)
    await some_indexes.drop(CARD.fingerprint)
    assert await some_indexes.live() is None


async def test_a_dropped_index_can_be_made_anew_and_is_empty(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    await (await some_indexes.open(CARD)).put([point(1)])
    await some_indexes.drop(CARD.fingerprint)
    await some_indexes.create(CARD)
    assert await (await some_indexes.open(CARD)).count() == 0


async def test_namespaces_of_an_index_version_hold_their_own_points(some_indexes: Indexes) -> None:
    for namespace, count in (("default", 1), ("blue", 2), ("red-2", 3)):
        await some_indexes.create(CARD, namespace)
        await (await some_indexes.open(CARD, namespace)).put([point(number + 1) for number in range(count)])
    await some_indexes.create(OTHER_CARD)
    assert await (await some_indexes.open(CARD)).count() == 1
    assert await (await some_indexes.open(CARD, "blue")).count() == 2
    assert await some_indexes.size(CARD) == 6
    assert await some_indexes.namespaces(CARD) == ["blue", "default", "red-2"]
    assert await some_indexes.namespaces(OTHER_CARD) == ["default"]


async def test_a_namespace_without_a_collection_cannot_be_opened(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    with pytest.raises(SetupError):
        await some_indexes.open(CARD, "blue")
    assert await some_indexes.namespaces(CARD) == ["default"]


async def test_the_size_is_that_of_no_index_without_the_default_namespace(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD, "blue")
    assert await some_indexes.size(CARD) is None


async def test_namespaces_are_loaded_and_dropped_together(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    async with some_indexes.loading(CARD):
        await some_indexes.create(CARD, "blue")
        await (await some_indexes.open(CARD, "blue")).put([point(1)])
    await some_indexes.make_live(CARD.fingerprint)
    origin = await some_indexes.origin()
    assert origin is not None
    assert origin.collection.endswith(CARD.fingerprint)
    await some_indexes.drop(CARD.fingerprint)
    assert await some_indexes.namespaces(CARD) == []
    with pytest.raises(SetupError):
        await some_indexes.open(CARD, "blue")
