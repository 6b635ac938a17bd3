"""What of a language model's extractions can be used. It is a guest: nothing it says is taken as it is."""

from collections.abc import Iterator, Mapping, Sequence

from toolscript.errors import Rejected
from toolscript.model.extraction_types import ExtractionType
from toolscript.model.items import JsonObject
from toolscript.model.library import Chunk, Extraction, extraction_id
from toolscript.model.text import readable
from toolscript.model.topics import clean_topics
from toolscript.model.words import terms_of_word, without_stop_words, words_of
from toolscript.sync.extraction_prompts import MAX_TEXT, MAX_TITLE, MOST_PER_CHUNK, MOST_TOPICS

MOST_READ = 100
# An extraction with fewer of its words from the chunk says something else: it was made up, or belongs elsewhere.
LEAST_SHARED = 0.4

_KNOWN = frozenset(type_.value for type_ in ExtractionType)


def extractions_in(reply: JsonObject, chunks: Sequence[Chunk], extracted_at: str) -> dict[str, list[Extraction]]:
    """By chunk id; a chunk without an answer, or with more than one, is not there."""
    given = reply.get("passages")
    if not isinstance(given, list):
        raise Rejected("the text model gave no list of passages", hint="try a larger model")
    answers: dict[int, list[list[object]]] = {}
    for one in given[: 2 * len(chunks)]:
        number = one.get("passage") if isinstance(one, Mapping) else None
        if isinstance(number, int) and not isinstance(number, bool) and isinstance(one.get("extractions"), list):
            answers.setdefault(number, []).append(one["extractions"])
    return {
        chunk.id: _extractions(answers[number][0], chunk, extracted_at)
        for number, chunk in enumerate(chunks, 1)
        if len(answers.get(number, ())) == 1
    }


def _extractions(given: Sequence[object], chunk: Chunk, extracted_at: str) -> list[Extraction]:
    found: dict[str, Extraction] = {}
    stems = _stems(f"{chunk.position.chapter} {chunk.position.section} {chunk.content}")
    for type_, title, text, topics in _usable(given):
        if len(found) < MOST_PER_CHUNK and text.casefold() not in found and _shares(text, stems):
            id_ = extraction_id(chunk.id, len(found))
            content = {"title": title, "text": text}
            found[text.casefold()] = Extraction(
                id_, chunk.source_id, chunk.id, type_, content, topics, extracted_at
            )
    return list(found.values())


def _usable(given: Sequence[object]) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    for one in given[:MOST_READ]:
        if not isinstance(one, Mapping):
            continue
        type_, text = one.get("type"), _line(one.get("text"), MAX_TEXT)
        if isinstance(type_, str) and type_ in _KNOWN and text:
            yield type_, _line(one.get("title"), MAX_TITLE), text, _topics(one.get("topics"))


def _shares(text: str, stems: frozenset[int]) -> bool:
    own = _stems(text)
    return bool(own) and len(own & stems) >= LEAST_SHARED * len(own)


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))


def _topics(given: object) -> tuple[str, ...]:
    named = [one for one in given[:MOST_READ] if isinstance(one, str)] if isinstance(given, list) else []
    return clean_topics(named, MOST_TOPICS)


def _line(given: object, most: int) -> str:
    """On one line and no longer than that, cut between words."""
    text = " ".join(readable(given).split()) if isinstance(given, str) else ""
    return text if len(text) <= most else text[: most + 1].rpartition(" ")[0][:most] or text[:most]
