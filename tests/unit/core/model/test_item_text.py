"""The embedded text of an item, and its sparse vector."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.item_text import (
    DOCUMENT_FIELDS,
    FIELDS,
    K1,
    MAX_EMBEDDED,
    MAX_PARAMETERS,
    NAME_SHARE,
    SERVER_SHARE,
    Field,
    embedded_text,
    embedded_views,
    item_terms,
    item_words,
    pack_stems,
    stems_of_words,
    unpack_stems,
)
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.retrieval.terms import terms_of_word

SCHEMA: JsonObject = {
    "properties": {
        "filePath": {"type": "string", "description": "Place of the file on disk"},
        "max_bytes": {"type": "integer"},
    }
}
READ = Item("k", ItemKind.TOOL, "fs", "readFile", "Reads the contents.", input_schema=SCHEMA)
PAPER = Item("d", ItemKind.RESOURCE, "", "On mail.box and readFile", "A text about mail")


def weight(item: Item, word: str) -> float:
    return item_terms(item).get(terms_of_word(word)[1], 0.0)


def test_the_name_the_description_and_the_parameters_are_embedded() -> None:
    assert embedded_text(READ) == "read File. Reads the contents. file Path, max bytes"


def test_an_item_with_only_a_name_is_embedded_by_its_name() -> None:
    assert embedded_text(replace(READ, description="", input_schema=None)) == "read File."


def test_the_embedded_text_is_bounded_from_each_side() -> None:
    many: JsonObject = {"properties": {f"parameter_{number}": {} for number in range(5_000)}}
    assert len(embedded_text(replace(READ, description="word " * 10_000))) == MAX_EMBEDDED
    assert len(embedded_text(replace(READ, input_schema=many))) <= MAX_EMBEDDED


def test_the_name_and_the_server_are_views_of_their_own() -> None:
    assert embedded_views(replace(READ, server="myFiles")) == [
        (1.0, embedded_text(READ)),
        (NAME_SHARE, "read File"),
        (SERVER_SHARE, "my Files"),
    ]


def test_a_document_has_no_server_and_its_title_is_a_sentence() -> None:
    assert PAPER.is_document
    assert not READ.is_document
    assert embedded_text(PAPER) == "On mail.box and readFile. A text about mail"
    assert embedded_views(PAPER) == [(1.0, embedded_text(PAPER)), (NAME_SHARE, "On mail.box and readFile")]


@pytest.mark.parametrize("word", ["fs", "read", "file", "readfile", "contents", "path", "disk"])
def test_every_field_is_indexed_by_its_words(word: str) -> None:
    assert weight(READ, word) > 0


def test_stop_words_of_a_description_are_not_indexed_and_those_of_a_name_are() -> None:
    assert weight(READ, "the") == 0
    assert weight(replace(READ, name="the"), "the") > 0


def test_a_name_counts_more_than_a_description_and_that_more_than_a_parameter() -> None:
    def text_of_usual_length(field: str) -> str:
        return "mail " + "other " * (int(FIELDS[field].usual_length) - 1)

    bare = replace(READ, description="", input_schema=None)
    named = weight(replace(bare, name=text_of_usual_length("name")), "mail")
    described = weight(replace(bare, description=text_of_usual_length("description")), "mail")
    schema: JsonObject = {"properties": {name: {} for name in ("mail", "b", "c", "d", "e", "f")}}
    parameter = weight(replace(bare, input_schema=schema), "mail")
    assert named > described > parameter > 0


@pytest.mark.parametrize(
    ("kind", "server", "field"),
    [
        (ItemKind.TOOL, "fs", FIELDS["name"]),
        (ItemKind.TOOL, "", FIELDS["name"]),
        (ItemKind.RESOURCE, "", DOCUMENT_FIELDS["name"]),
    ],
)
def test_a_weight_is_that_of_bm25f(kind: ItemKind, server: str, field: Field) -> None:
    """Names of documents are longer on average. A tool without a server is no document."""
    item = Item("k", kind, server, "mail mail box")
    mass = field.weight * 2 / (1 - field.length_penalty + field.length_penalty * 3 / field.usual_length)
    assert weight(item, "mail") == pytest.approx(mass * (K1 + 1) / (mass + K1))


def test_the_length_penalty_of_a_document_is_lower_than_that_of_a_tool() -> None:
    long = "mail " + "other " * 150
    tool = Item("k", ItemKind.TOOL, "fs", "x", long)
    document = replace(tool, kind=ItemKind.RESOURCE, server="")
    assert weight(document, "mail") > weight(tool, "mail") > 0


def test_the_stems_of_an_item_are_those_in_its_sparse_vector() -> None:
    stems = stems_of_words(item_words(READ))
    assert {terms_of_word(word)[0] for word in ("fs", "reading", "file", "readfile", "content", "disk")} <= stems
    assert stems <= set(item_terms(READ))


@given(st.frozensets(st.integers(0, 2**32 - 1), max_size=200))
def test_packed_stems_are_small_and_unpack_unchanged(stems: frozenset[int]) -> None:
    packed = pack_stems(stems)
    assert unpack_stems(packed) == stems
    assert len(packed) == 5 * len(stems)
    assert packed.isascii()
    assert pack_stems(sorted(stems, reverse=True)) == packed


def test_each_repetition_of_a_word_adds_less() -> None:
    def weight_of(times: int) -> float:
        return weight(replace(READ, description="mail " * times), "mail")

    assert weight_of(2) - weight_of(1) > weight_of(3) - weight_of(2) > 0
    assert weight_of(900) < K1 + 1


def test_parameters_beyond_the_limit_are_ignored() -> None:
    many: JsonObject = {"properties": {f"p{number}": {} for number in range(MAX_PARAMETERS)} | {"beyond": {}}}
    assert weight(replace(READ, input_schema=many), "beyond") == 0


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": None},
        {"properties": ["a"]},
        {"properties": {"a": True}},
        {"properties": {"a": {"description": 7}}},
        {"properties": {"a": None, "": {}}},
    ],
    ids=json.dumps,
)
def test_a_schema_of_any_shape_is_read(schema: JsonObject) -> None:
    item = replace(READ, input_schema=schema)
    assert embedded_text(item).startswith("read File.")
    assert weight(item, "read") > 0


@given(st.text(), st.text(), st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5))
def test_any_item_has_a_text_and_bounded_weights(name: str, about: str, parameters: dict[str, str]) -> None:
    schema = {"properties": {key: {"description": text} for key, text in parameters.items()}}
    item = Item("k", ItemKind.TOOL, "server", name, about, input_schema=schema)
    assert len(embedded_text(item)) <= MAX_EMBEDDED
    assert all(0 < term_weight <= K1 + 1 for term_weight in item_terms(item).values())
    assert item_terms(item) == item_terms(item)
