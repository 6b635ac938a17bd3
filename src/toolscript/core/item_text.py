"""The text of an item to embed, and its sparse vector (BM25F), field by field."""

import base64
import string
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from toolscript.core.items import Item, JsonObject
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, without_stop_words, words_of

# Both are part of the index fingerprint: raise it whenever the text or a weight below changes.
ITEM_TEXT_VERSION = 2

MAX_EMBEDDED = 2_000
MAX_WORDS_PER_FIELD = 1_000
MAX_FIELD_TEXT = 20_000
MAX_PARAMETERS = 200
K1 = 0.9

# The value of each base-85 digit, and of each of the five places.
_LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
_DIGITS = np.zeros(256, dtype=np.int64)
_DIGITS[list(_LETTERS.encode())] = range(85)
_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.int64)

# Weights of the name and the server's name in an item's vector; its text has weight 1.
NAME_SHARE = SERVER_SHARE = 0.25


@dataclass(frozen=True)
class Field:
    """BM25F parameters of a field: weight, length penalty and average length."""

    weight: float
    length_penalty: float
    usual_length: float


# Average lengths are constants from real catalogs rather than live averages: an indexed weight stays valid.
FIELDS: Mapping[str, Field] = {
    "server": Field(1.0, 0.3, 3.0),
    "name": Field(2.0, 0.3, 4.0),
    "description": Field(1.0, 0.75, 22.0),
    "parameter": Field(0.5, 0.75, 6.0),
    "parameter_text": Field(0.3, 0.75, 25.0),
}


# A document is longer than a description, and its title is a sentence.
DOCUMENT_FIELDS: Mapping[str, Field] = {
    **FIELDS,
    "name": Field(2.0, 0.3, 14.0),
    "description": Field(1.0, 0.75, 150.0),
}


def embedded_views(item: Item) -> list[tuple[float, str]]:
    """Return the weighted texts of an item's vector: a long description must not drown the name."""
    views = [
        (1.0, embedded_text(item)),
        (NAME_SHARE, _readable_name(item)),
        (SERVER_SHARE, split_identifier(item.server)),
    ]
    return [(share, text) for share, text in views if text]


def embedded_text(item: Item) -> str:
    """Return the text for dense retrieval: the name as words, the description and the parameters' names."""
    parameters = ", ".join(split_identifier(name) for name, _ in _parameters(item.input_schema))
    text = f"{_readable_name(item)}. {item.description}"
    return f"{text[:MAX_EMBEDDED]} {parameters}".strip()[:MAX_EMBEDDED]


def _readable_name(item: Item) -> str:
    return item.name if item.is_document else split_identifier(item.name)


def item_terms(item: Item) -> dict[int, float]:
    """Return the item as a sparse vector: BM25F saturation per term; the engine applies the IDF."""
    return terms_of_words(item, item_words(item))


def terms_of_words(item: Item, words: Mapping[str, list[str]]) -> dict[int, float]:
    """Return the same for an item that is already split into words."""
    return terms_of_fields(words, DOCUMENT_FIELDS if item.is_document else FIELDS)


def terms_of_fields(
    words_by_field: Mapping[str, list[str]], fields: Mapping[str, Field] = FIELDS
) -> dict[int, float]:
    mass = _mass_of_fields(words_by_field, fields)
    by_stem, by_surface = (
        _saturated((terms_of_word(word)[form], weight) for word, weight in mass) for form in (0, 1)
    )
    return by_surface | by_stem


def stem_terms_of_fields(words_by_field: Mapping[str, list[str]], fields: Mapping[str, Field]) -> dict[int, float]:
    """Return the same with stems only: in long texts a surface form adds nothing to its stem."""
    return _saturated((terms_of_word(word)[0], weight) for word, weight in _mass_of_fields(words_by_field, fields))


def _mass_of_fields(
    words_by_field: Mapping[str, list[str]], fields: Mapping[str, Field]
) -> list[tuple[str, float]]:
    mass: defaultdict[str, float] = defaultdict(float)
    for name, words in words_by_field.items():
        field = fields[name]
        norm = 1 - field.length_penalty + field.length_penalty * len(words) / field.usual_length
        for word, count in Counter(words).items():
            mass[word] += field.weight * count / norm
    return list(mass.items())


def stems_of_words(words_by_field: Mapping[str, list[str]]) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for words in words_by_field.values() for word in words)


def pack_stems(stems: Iterable[int]) -> str:
    """Pack stems into a string small enough for every point's payload."""
    return base64.b85encode(array("I", sorted(stems)).tobytes()).decode()


def unpack_stems(packed: str) -> frozenset[int]:
    """Unpack stems, four bytes each. `base64.b85decode` gives the same in eight times the time."""
    digits = _DIGITS[np.frombuffer(packed.encode("ascii"), dtype=np.uint8)].reshape(-1, 5)
    return frozenset(array("I", (digits @ _POWERS).astype(">u4").tobytes()))


def _saturated(mass: Iterable[tuple[int, float]]) -> dict[int, float]:
    terms: defaultdict[int, float] = defaultdict(float)
    for term, weight in mass:
        terms[term] += weight
    return {term: weight * (K1 + 1) / (weight + K1) for term, weight in terms.items()}


def item_words(item: Item) -> dict[str, list[str]]:
    """Return the words of each field, in order."""
    parameters = list(_parameters(item.input_schema))
    return {
        "server": words_of(item.server),
        "name": words_of(item.name),
        "description": _content(item.description[:MAX_FIELD_TEXT]),
        "parameter": [word for name, _ in parameters for word in words_of(name)][:MAX_WORDS_PER_FIELD],
        "parameter_text": _content(" ".join(text for _, text in parameters)[:MAX_FIELD_TEXT]),
    }


def _content(text: str) -> list[str]:
    return without_stop_words(words_of(text))[:MAX_WORDS_PER_FIELD]


def _parameters(schema: JsonObject | None) -> Iterator[tuple[str, str]]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, definition in list(properties.items())[:MAX_PARAMETERS]:
        text = definition.get("description") if isinstance(definition, Mapping) else ""
        yield str(name), text if isinstance(text, str) else ""
