"""The features of a candidate: the same from an item and from its point."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import stems
from toolscript.core.item_text import item_words, stems_of_words
from toolscript.core.items import Item, ItemKind, StoredItem
from toolscript.core.retrieval.rerank import FEATURE_FIELDS, Features, features_of_payload, trigrams
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.points import point_of

SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}}
Texts = st.text(max_size=30)
# A catalog has no tools without a server; a text without one is a document.
Items = st.builds(
    lambda server, name, text, schema: Item(
        "k", ItemKind.TOOL if server else ItemKind.RESOURCE, server, name, text, input_schema=schema
    ),
    Texts,
    Texts.filter(bool),
    Texts,
    st.sampled_from([None, SCHEMA]),
)


def features_of(item: Item) -> Features:
    """Return the features as read from the payload of an item's point."""
    point = point_of(StoredItem(1, 1, item), HashEmbedder()._embed("x"))
    return features_of_payload({name: point.fields[name] for name in FEATURE_FIELDS})


@settings(max_examples=100, deadline=None)
@given(Items)
def test_an_item_and_its_point_have_the_same_features(item: Item) -> None:
    name = "" if item.is_document else item.name
    assert features_of(item) == Features(name, stems_of_words(item_words(item)))


def test_the_stems_are_those_of_all_searchable_text() -> None:
    item = Item("k", ItemKind.TOOL, "files", "read_file", "Reads the contents", input_schema=SCHEMA)
    assert features_of(item) == Features("read_file", stems("file read readfile reads contents path where it is"))


def test_the_title_of_a_document_has_no_name_features() -> None:
    document = Item("k", ItemKind.RESOURCE, "", "Deleting files", "A text")
    features = features_of(document)
    assert features == Features("", stems("deleting files text"))
    assert (features.trigrams, features.actions) == (frozenset(), frozenset())


def test_a_point_of_an_older_index_has_no_stems() -> None:
    assert features_of_payload({"server": "s", "name": "read"}) == Features("read", frozenset())


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("createIssue", {"create"}),
        ("delete_file", {"delete"}),
        ("get-or-create", {"read", "create"}),
        ("weather", set()),
    ],
)
def test_a_name_has_its_actions_in_every_notation(name: str, actions: set[str]) -> None:
    assert Features(name, frozenset()).actions == actions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Read_File", {"rea", "ead", "adf", "dfi", "fil", "ile"}),
        ("go", {"go"}),
        ("a", {"a"}),
        ("日本語だ", {"日本語", "本語だ"}),
        ("_-!", set()),
        ("", set()),
    ],
)
def test_trigrams_contain_only_letters_and_digits(text: str, expected: set[str]) -> None:
    assert trigrams(text) == expected
