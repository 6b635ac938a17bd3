"""Filters on the engine match like the evaluator, with and without an index on the field."""

from collections.abc import AsyncIterator, Sequence

import pytest

from tests.engines.filters_at_scale import (
    NO_INDEXES,
    collection,
    compare,
    differences,
    find_matching,
    put,
    with_indexes,
)
from tests.unit.documents.random_filters import DATES, NAMES, NUMBERS, TEXTS, RandomFilters
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.core.settings.service import Settings
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters, Op, filterable, moment
from toolscript.documents.qdrant.filters import compiled, filter_payload
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.tenant_points import META, MOMENTS, field_name

pytestmark = pytest.mark.requirement("DOC-002")


@pytest.fixture
async def qdrant(engines: Settings) -> AsyncIterator[Qdrant]:
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        yield connected


def must(field: str, op: str, value: object) -> Filters:
    return Filters(must=(FieldCondition.of(field, op, value),))


@pytest.mark.states("S2-062", "S2-063")
async def test_random_filters_match_the_same_on_the_engine_and_the_evaluator(qdrant: Qdrant) -> None:
    """A slice of what `python -m tests.engines.filters_at_scale` compares."""
    worlds = RandomFilters(seed=2026)
    documents = worlds.documents(100)
    different, telling = await compare(qdrant, documents, worlds.filters(documents, 1_000), seed=2026)
    assert different == []
    assert telling > 400, "or these filters would tell nothing"


async def test_a_comparison_finds_an_engine_that_is_wrong(qdrant: Qdrant) -> None:
    stored = [filterable({"n": 1}), filterable({"n": 2})]
    believed = [filterable({"n": 1}), filterable({"n": 3})]
    async with collection(qdrant, NO_INDEXES) as name:
        await put(qdrant, name, stored)
        same, _ = await differences(qdrant, {"": name}, stored, [must("n", "gte", 2)])
        (different,), _ = await differences(qdrant, {"": name}, believed, [must("n", "eq", 2)])
    assert same == []
    assert (different.found_wrongly, different.missed) == ([1], [])


INDEXES = [None, "keyword", "number", "bool"]


async def _find_each(qdrant: Qdrant, kind: str | None, values: Sequence[object], op: str) -> list[list[int]]:
    """Return the documents that each value finds; document n has value n in one field."""
    layout = DocumentLayout(fields={"field": kind}) if kind else NO_INDEXES
    async with collection(qdrant, layout) as name:
        await put(qdrant, name, [filterable({"field": value}) for value in values])
        return await find_matching(qdrant, name, [must("field", op, value) for value in values])


@pytest.mark.parametrize("kind", INDEXES)
async def test_every_number_is_found_by_itself_and_by_those_of_the_same_15_digits(
    qdrant: Qdrant, kind: str | None
) -> None:
    answers = await _find_each(qdrant, kind, NUMBERS, "eq")
    seen = [filterable({"n": number}).values["n"] for number in NUMBERS]
    assert answers == [[n for n, other in enumerate(seen) if other == value] for value in seen]


@pytest.mark.parametrize("kind", INDEXES)
async def test_every_text_is_found_by_itself_alone(qdrant: Qdrant, kind: str | None) -> None:
    texts = [text[:1_000] for text in (*TEXTS, *DATES)]
    assert await _find_each(qdrant, kind, texts, "eq") == [[n] for n in range(len(texts))]


@pytest.mark.parametrize("kind", INDEXES)
async def test_every_date_is_found_by_those_not_after_it(qdrant: Qdrant, kind: str | None) -> None:
    dates = [date for date in DATES if moment(date) is not None]
    expected = [[n for n, date in enumerate(dates) if (moment(date) or 0) <= (moment(of) or 0)] for of in dates]
    assert await _find_each(qdrant, kind, dates, "lte") == expected


@pytest.mark.parametrize("kind", INDEXES)
async def test_booleans_numbers_and_texts_that_look_alike_are_different(qdrant: Qdrant, kind: str | None) -> None:
    values = [True, 1, "1", "true", False, 0, "0", "false", "", "1.0", "True"]
    assert await _find_each(qdrant, kind, values, "eq") == [[n] for n in range(len(values))]
    assert await _find_each(qdrant, kind, values, "contains") == [
        *([0], [1], [2, 9], [3], [4], [5], [6, 9], [7]),
        *([2, 3, 6, 7, 8, 9, 10], [9], [10]),
    ]


@pytest.mark.parametrize("layout", [NO_INDEXES, with_indexes(1)], ids=["without indexes", "with indexes"])
async def test_no_name_of_a_field_is_taken_for_another(qdrant: Qdrant, layout: DocumentLayout) -> None:
    async with collection(qdrant, layout) as name:
        await put(qdrant, name, [filterable({field: "x"}) for field in NAMES])
        for op, value in (("eq", "x"), ("exists", True), ("nin", []), ("contains", "")):
            answers = await find_matching(qdrant, name, [must(field, op, value) for field in NAMES])
            assert answers == [[n] for n in range(len(NAMES))]


def test_names_become_steps_of_a_path_that_differ() -> None:
    assert len({field_name(name) for name in NAMES}) == len(NAMES)
    assert all(name.replace("-", "").isascii() for name in map(field_name, NAMES))


def test_a_list_of_one_is_stored_as_a_list_and_a_value_alone_as_itself() -> None:
    stored = filter_payload(filterable({"alone": "x", "list": ["x"], "when": "2026-01-31", "none": []}))
    assert stored == {
        META: {"falone": "x", "flist": ["x"], "fwhen": "2026-01-31"},
        MOMENTS: {"fwhen": [1_769_817_600_000_000]},
    }


def test_integers_are_stored_as_such_and_only_booleans_as_booleans() -> None:
    stored = filter_payload(filterable({"n": [1.0, 2**53, 0.5, 2.0**63, True, -0.0]}))[META]
    assert isinstance(stored, dict)
    assert [type(value) for value in stored["fn"]] == [int, int, float, float, bool, int]


def test_no_filters_are_no_conditions() -> None:
    assert compiled(NO_FILTERS) == wire.Filter()


def test_a_list_of_many_texts_is_one_condition() -> None:
    condition = compiled(Filters(must=(FieldCondition("f", Op.IN, tuple(f"t{n}" for n in range(100))),))).must[0]
    assert len(condition.field.match.keywords.strings) == 100
