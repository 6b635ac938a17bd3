"""Generated tenants differ in size as real ones do, and their documents look like real ones."""

from statistics import median

import numpy as np
import pytest

from benchmarks.questions import FILTERS, classes_of, draws, question_for
from benchmarks.synthetic import (
    WORDS,
    Originals,
    TenantSize,
    documents_of,
    originals_of,
    portions_of,
    sizes_of,
    subjects_of,
    synthetic_texts,
)
from toolscript.core.chunking import terms_of_chunk
from toolscript.documents.model.filters import passes
from toolscript.documents.model.points import IndexedDocument

pytestmark = pytest.mark.slow

SEED = 5


@pytest.fixture(scope="module")
def originals() -> Originals:
    texts = synthetic_texts(60, SEED)
    vectors = np.random.default_rng(SEED).standard_normal((60, 64), dtype=np.float32)
    return originals_of(texts, np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)))


def all_of(originals: Originals, size: TenantSize) -> list[IndexedDocument]:
    return [item for portion in range(size.portions) for item in documents_of(originals, size, portion, SEED)]


def test_one_tenant_has_a_fifth_and_half_of_them_have_about_twenty() -> None:
    sizes = [size.passages for size in sizes_of(10_000, 1_000_000, SEED)]
    assert sum(sizes) == 1_000_000
    assert 0.15 < sizes[0] / 1_000_000 < 0.25
    assert 10 < median(sizes) < 40
    assert min(sizes) > 0
    assert sum(size > 10_000 for size in sizes) >= 5


def test_every_portion_of_every_tenant_is_written_once_and_tenants_are_mixed() -> None:
    sizes = sizes_of(50, 20_000, SEED)
    portions = portions_of(sizes, SEED)
    assert sorted((size.number, portion) for size, portion in portions) == [
        (size.number, portion) for size in sizes for portion in range(size.portions)
    ]
    of_the_largest = [index for index, (size, _) in enumerate(portions) if size.number == 0]
    assert of_the_largest[-1] - of_the_largest[0] > len(of_the_largest)


def test_a_tenant_has_the_expected_chunks_every_time(originals: Originals) -> None:
    size = TenantSize(3, 431)
    first, second = all_of(originals, size), all_of(originals, size)
    assert sum(len(item.passages) for item in first) == 431
    assert len({item.header.key for item in first}) == len(first)
    assert [item.header for item in first] == [item.header for item in second]
    for item, other in zip(first, second, strict=True):
        assert all(np.array_equal(a.vector, b.vector) for a, b in zip(item.passages, other.passages, strict=True))


def test_chunks_are_near_the_subjects_of_the_tenant_and_match_their_own_words(originals: Originals) -> None:
    size = TenantSize(7, 40)
    own = originals.vectors[subjects_of(originals, size, SEED)]
    for document in all_of(originals, size):
        for indexed in document.passages:
            assert float((own @ indexed.vector).max()) > 0.8
            assert indexed.terms.keys() == terms_of_chunk("", indexed.passage.text).keys()
            assert 30 < len(indexed.terms) < 90
            assert 300 < len(indexed.passage.text) < 1_200


def test_the_words_of_texts_come_first_and_there_are_as_many_as_in_real_documents(originals: Originals) -> None:
    words = originals.vocabulary.words
    assert len(set(words)) == len(words) == WORDS
    drawn = originals.vocabulary.draw(np.random.default_rng(SEED), (1_000, 50))
    counts = np.bincount(drawn.ravel(), minlength=WORDS)
    assert counts[:100].sum() > counts[100:1_000].sum() > 0
    assert counts[1_000:].sum() > 10_000


@pytest.mark.parametrize(
    ("filtered", "share"), [("", 1.0), ("1 of 2", 0.5), ("1 of 20", 0.05), ("1 of 10, no index", 0.1)]
)
def test_filters_match_their_share(originals: Originals, filtered: str, share: float) -> None:
    documents = all_of(originals, TenantSize(1, 3_000))
    through = sum(passes(FILTERS[filtered], document.metadata) for document in documents) / len(documents)
    assert through == pytest.approx(share, rel=0.4)


def test_tenants_are_drawn_uniformly_and_by_size() -> None:
    sizes = sizes_of(1_000, 100_000, SEED)
    drawn = draws(sizes, 400, np.random.default_rng(SEED))
    assert {name: len(listed) for name, listed in drawn.items()} == dict.fromkeys(drawn, 400)
    one_like_another, by_size = drawn["any tenant"], drawn["any passage's tenant"]
    assert median(size.passages for size in one_like_another) < 60
    assert median(size.passages for size in by_size) > 1_000
    for name, listed in classes_of(sizes).items():
        assert set(drawn[name]) <= set(listed)


def test_a_query_is_a_few_words_of_a_subject_of_its_tenant(originals: Originals) -> None:
    chance = np.random.default_rng(SEED)
    size = TenantSize(7, 40)
    about = [originals.texts[index] for index in subjects_of(originals, size, SEED)]
    for _ in range(20):
        text = question_for(originals, size, SEED, chance).text
        assert 6 <= len(text.split()) <= 12
        assert any(text in item for item in about)
