"""What of an item is embedded, and what of it the word arm indexes, field by field."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolscript.model.items import Item, JsonObject
from toolscript.model.words import split_identifier, terms_of_word, without_stop_words, words_of

# Both are part of the index fingerprint: raise it whenever the text or a weight below changes.
ITEM_TEXT_VERSION = 1

MAX_EMBEDDED = 2_000
MAX_WORDS_PER_FIELD = 1_000
MAX_FIELD_TEXT = 20_000
MAX_PARAMETERS = 200
K1 = 0.9


@dataclass(frozen=True)
class Field:
    """BM25F: how much a word counts here, and against which usual length."""

    weight: float
    length_penalty: float
    usual_length: float


# Usual lengths are constants of real catalogs rather than live averages: a weight once indexed stays true.
FIELDS: Mapping[str, Field] = {
    "server": Field(1.0, 0.3, 3.0),
    "name": Field(2.0, 0.3, 4.0),
    "description": Field(1.0, 0.75, 22.0),
    "parameter": Field(0.5, 0.75, 6.0),
    "parameter_text": Field(0.3, 0.75, 25.0),
}


def embedded_text(item: Item) -> str:
    """The name as words, the description and the parameters' names: what the dense arm knows."""
    parameters = ", ".join(split_identifier(name) for name, _ in _parameters(item.input_schema))
    text = f"{split_identifier(item.name)}. {item.description}"
    return f"{text[:MAX_EMBEDDED]} {parameters}".strip()[:MAX_EMBEDDED]


def item_terms(item: Item) -> dict[int, float]:
    """The item as a sparse vector: BM25F saturation per term; the engine adds the rarity of each word."""
    return terms_of_fields(item_words(item))


def terms_of_fields(words_by_field: Mapping[str, list[str]]) -> dict[int, float]:
    mass: defaultdict[str, float] = defaultdict(float)
    for name, words in words_by_field.items():
        field = FIELDS[name]
        norm = 1 - field.length_penalty + field.length_penalty * len(words) / field.usual_length
        for word, count in Counter(words).items():
            mass[word] += field.weight * count / norm
    return _saturated(mass)


def _saturated(mass: Mapping[str, float]) -> dict[int, float]:
    stems: dict[int, float] = {}
    surfaces: dict[int, float] = {}
    for word, weight in mass.items():
        stem, surface = terms_of_word(word)
        stems[stem] = stems.get(stem, 0.0) + weight
        surfaces[surface] = surfaces.get(surface, 0.0) + weight
    return {term: weight * (K1 + 1) / (weight + K1) for part in (surfaces, stems) for term, weight in part.items()}


def item_words(item: Item) -> dict[str, list[str]]:
    """The words of each field, in order."""
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
