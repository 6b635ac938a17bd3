"""Documents of many tenants that look like real ones: some have hundreds of thousands of passages, most a few.

A passage is a real text's vector moved a little, with part of the text's words and others as common as they are in
real documents. Uniform noise would not do, see `lookalikes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.evaluation.lookalikes import moved
from toolscript.evaluation.made_words import Numbers, Vocabulary, vocabulary_of
from toolscript.model.document_points import IndexedDocument, IndexedPassage
from toolscript.model.documents import DocumentHeader, Passage, document_key
from toolscript.model.filters import filterable
from toolscript.model.item_text import K1
from toolscript.model.items import JsonObject
from toolscript.model.models import Matrix
from toolscript.model.tenancy import Tenant

# Sizes fall with a tenant's rank like this, above a few that everybody has.
STEEPNESS = 1.2
FEW = 30
# Passages of one portion of a tenant, the unit in which documents are made and written.
PORTION = 200
PASSAGES_EACH, MOST_EACH = 3.0, 12
WORDS_KEPT, WORDS_ADDED = 40, 36
TITLE_WORDS, SENTENCE = 6, 14
SUBJECTS, PASSAGES_A_SUBJECT = 5, 20
# In so many of twenty documents each.
LANGUAGES = ("en",) * 12 + ("de",) * 5 + ("fr",) * 2 + ("fi",)
FIRST_YEAR, YEARS = 2006, 20
SOURCES, TAGS = 50, 20


@dataclass(frozen=True)
class Originals:
    """What documents are made of: texts with their vectors, and the words of each by their places."""

    texts: Sequence[str]
    vectors: Matrix
    words: Sequence[Numbers]
    vocabulary: Vocabulary


def originals_of(texts: Sequence[str], vectors: Matrix) -> Originals:
    vocabulary, words = vocabulary_of(texts)
    return Originals(texts, vectors, words, vocabulary)


@dataclass(frozen=True)
class TenantSize:
    number: int
    passages: int

    @property
    def tenant(self) -> Tenant:
        return Tenant(f"tenant-{self.number:06}")

    @property
    def portions(self) -> int:
        return -(-self.passages // PORTION)


def sizes_of(tenants: int, passages: int, seed: int) -> list[TenantSize]:
    """The largest first: a fifth of all passages is its own, half of the tenants have about twenty or fewer."""
    few = np.random.default_rng([seed, 0]).integers(1, min(FEW, max(2, passages // tenants)), size=tenants)
    shares = np.arange(1, tenants + 1) ** -STEEPNESS
    left = max(0, passages - int(few.sum()))
    sizes = few + np.floor(left * shares / shares.sum()).astype(np.int64)
    sizes[0] += passages - sizes.sum()
    return [TenantSize(number, int(size)) for number, size in enumerate(sizes)]


def portions_of(sizes: Sequence[TenantSize], seed: int) -> list[tuple[TenantSize, int]]:
    """Of all tenants mixed, as they arrive in real life."""
    listed = [(size, number) for size in sizes for number in range(size.portions)]
    return [listed[at] for at in np.random.default_rng([seed, 1]).permutation(len(listed))]


def subjects_of(originals: Originals, size: TenantSize, seed: int) -> Numbers:
    """The texts that a tenant's documents are like: a large tenant has more to tell."""
    count = min(len(originals.texts), SUBJECTS + size.passages // PASSAGES_A_SUBJECT)
    return np.random.default_rng([seed, 2, size.number]).choice(len(originals.texts), count, replace=False)


def documents_of(originals: Originals, size: TenantSize, portion: int, seed: int) -> Iterator[IndexedDocument]:
    """One portion of a tenant's documents, the same ones for the same seed."""
    chance = np.random.default_rng([seed, 3, size.number, portion])
    count = min(PORTION, size.passages - portion * PORTION)
    origins = chance.choice(subjects_of(originals, size, seed), count)
    vectors = moved(originals.vectors[origins], chance)
    added = originals.vocabulary.draw(chance, (count, WORDS_ADDED))
    at = 0
    while at < count:
        several = min(count - at, MOST_EACH, int(chance.geometric(1 / PASSAGES_EACH)))
        words = [mixed(originals.words[origins[one]], added[one], chance) for one in range(at, at + several)]
        id_ = f"doc-{portion}-{at}"
        yield _document(size.tenant, id_, originals.vocabulary, words, vectors[at : at + several], chance)
        at += several


def mixed(own: Numbers, added: Numbers, chance: np.random.Generator) -> Numbers:
    start = int(chance.integers(max(1, len(own) - WORDS_KEPT)))
    words = np.concatenate([own[start : start + WORDS_KEPT], added])
    return np.asarray(words[chance.permutation(len(words))])


def _document(
    tenant: Tenant,
    id_: str,
    vocabulary: Vocabulary,
    words: Sequence[Numbers],
    vectors: Matrix,
    chance: np.random.Generator,
) -> IndexedDocument:
    metadata = _metadata(" ".join(vocabulary.words[at] for at in words[0][:TITLE_WORDS]), chance)
    passages = []
    start = 0
    for number, (places, vector) in enumerate(zip(words, vectors, strict=True)):
        text = text_of(places, vocabulary)
        passage = Passage(number, start, start + len(text), text)
        passages.append(IndexedPassage(passage, vector, terms_of(places, vocabulary)))
        start = passage.end
    header = DocumentHeader(document_key(tenant, id_), id_, metadata, f"{number:032x}", len(passages), version=1)
    return IndexedDocument(header, filterable(metadata), passages)


def text_of(places: Numbers, vocabulary: Vocabulary) -> str:
    said = [vocabulary.phrases[place] for place in places.tolist()]
    return "".join(" ".join(said[at : at + SENTENCE]) + ". " for at in range(0, len(said), SENTENCE))


def terms_of(places: Numbers, vocabulary: Vocabulary) -> dict[int, float]:
    known, counts = np.unique(places, return_counts=True)
    weights = counts * (K1 + 1) / (counts + K1)
    return dict(zip(vocabulary.terms[known].tolist(), weights.tolist(), strict=True))


def _metadata(title: str, chance: np.random.Generator) -> JsonObject:
    any_of = chance.integers(1 << 16, size=8).tolist()
    year = FIRST_YEAR + any_of[0] % YEARS
    return {
        "title": title,
        "lang": LANGUAGES[any_of[1] % len(LANGUAGES)],
        "year": year,
        "created": f"{year}-{any_of[2] % 12 + 1:02}-{any_of[2] % 28 + 1:02}",
        "public": any_of[3] % 2 == 0,
        "source": f"source-{any_of[4] % SOURCES}",
        "tags": [f"tag-{number % TAGS}" for number in any_of[5 : 5 + any_of[1] % 4]],
    }
