"""Synthetic data: points, texts, words, documents and chunks that resemble real ones.

Uniform noise is unsuitable: in many dimensions all points are equally far apart, and no index can navigate them.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolscript.core.auth.model import Tenant
from toolscript.core.item_text import K1
from toolscript.core.items import ItemKind, JsonObject
from toolscript.core.retrieval.model import Matrix, Point, Terms, Vector, type_skills
from toolscript.core.retrieval.terms import terms_of_word, without_stop_words, words_of
from toolscript.core.taxonomy import skill_point_id
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader, document_key
from toolscript.documents.model.filters import filterable
from toolscript.documents.model.points import IndexedChunk, IndexedDocument
from toolscript.knowledge.model.library import (
    Chunk,
    Extraction,
    Position,
    Source,
    chunk_id,
    extraction_id,
    point_of,
    source_id,
)

NOISE = 0.4
EXCHANGED = 0.2
SKILLS = 30
KINDS = tuple(ItemKind)
KIND_SHARES = (0.93, 0.05, 0.02)
ACTIVE_SHARE = 0.9
SENTENCES = 6

_SUBJECTS = {
    "payroll": "salary overtime bonus payslip deduction pension allowance timesheet contract tax",
    "gardening": "soil compost seedling tomato fertilizer pruning greenhouse weed irrigation harvest",
    "cardiology": "artery hypertension stroke cholesterol valve arrhythmia statin stent pulse infarction",
    "networking": "router firewall packet latency switch bandwidth tunnel gateway protocol subnet",
    "sailing": "anchor mast keel harbour tide rudder rigging current buoy headwind",
    "baking": "dough yeast oven flour crust butter sourdough glaze frosting whisk",
    "insurance": "premium claim liability deductible policyholder coverage adjuster renewal broker damage",
    "astronomy": "telescope galaxy comet orbit nebula spectrum eclipse supernova asteroid redshift",
    "railways": "locomotive timetable platform signal freight carriage gauge junction delay conductor",
    "immunology": "antibody vaccine antigen lymphocyte inflammation cytokine receptor allergy infection serum",
    "accounting": "ledger invoice audit depreciation balance receipt liability voucher reconciliation equity",
    "photography": "lens aperture shutter exposure tripod negative portrait contrast flash sensor",
    "law": "plaintiff verdict appeal statute testimony injunction settlement defendant jurisdiction clause",
    "geology": "basalt sediment fault mineral erosion magma quartz fossil crust earthquake",
    "football": "goalkeeper penalty midfield referee league tackle transfer stadium coach defender",
    "chemistry": "catalyst polymer solvent titration oxidation molecule reagent isotope acid crystal",
    "teaching": "curriculum pupil homework grading lesson exam classroom literacy seminar tutor",
    "logistics": "warehouse pallet shipment customs inventory courier container forklift dispatch route",
    "music": "violin rhythm chord melody orchestra tempo rehearsal soprano harmony drum",
    "energy": "turbine grid battery solar reactor transformer voltage insulation meter biomass",
    "software": "compiler deployment database commit regression thread cache migration parser rollback",
    "veterinary": "foal parasite kennel vaccination hoof litter grooming fracture livestock sedation",
    "tourism": "itinerary hostel museum visa excursion guide souvenir luggage booking resort",
    "aviation": "runway altitude cockpit turbulence fuselage propeller landing pilot radar fuel",
    "textiles": "cotton loom dye fabric weaving silk seam spindle wool embroidery",
    "construction": "scaffold concrete foundation beam permit crane insulation plaster drainage contractor",
    "nutrition": "protein fibre vitamin calorie appetite mineral obesity diet digestion glucose",
    "psychology": "anxiety memory therapy attention behaviour perception habit emotion trauma motivation",
    "fishing": "trawler net bait quota salmon reel hook spawning catch hatchery",
    "printing": "ink paper typeface press margin binding proof cartridge pigment layout",
}
_FRAMES = (
    "The {a} of {subject} depends on the {b} and on how early the {c} is checked.",
    "When the {a} fails, the {b} has to be replaced before anybody looks at the {c}.",
    "Most reports about the {a} say little about the {b}, although the {c} explains it.",
    "A {a} without a {b} is rare in {subject}; with a {c} it becomes common.",
    "We compared the {a} with the {b} over three years and found that the {c} made the difference.",
    "Nobody should change the {a} while the {b} is being measured by the {c}.",
    "How is the {a} related to the {b}, and what does the {c} have to do with it?",
    "New rules for the {a} came into force in spring: the {b} now needs a second {c}.",
    "In {subject} the {a} is handled first, then the {b}, and the {c} last.",
    "The cost of a {a} rose by a tenth because the {b} and the {c} became scarce.",
)

WORDS = 50_000
# Frequency of a word by rank, as in real texts (Zipf): 1 / (rank + SHIFT).
SHIFT = 10.0
_FILLERS = ("the", "of", "and", "in", "with", "for", "by", "on")

Numbers = NDArray[np.int64]

# Sizes fall with a tenant's rank by this power, on top of a few chunks that every tenant has.
STEEPNESS = 1.2
FEW = 30
# Chunks of one portion of a tenant, the unit in which documents are generated and written.
PORTION = 200
CHUNKS_EACH, MAX_EACH = 3.0, 12
WORDS_KEPT, WORDS_ADDED = 40, 36
TITLE_WORDS, SENTENCE = 6, 14
SUBJECTS, CHUNKS_A_SUBJECT = 5, 20
# Number of documents out of twenty, by language.
LANGUAGES = ("en",) * 12 + ("de",) * 5 + ("fr",) * 2 + ("fi",)
FIRST_YEAR, YEARS = 2006, 20
SOURCES, TAGS = 50, 20

CHUNKS_A_SOURCE = 200
# One chunk in so many has an extraction.
CHUNKS_AN_EXTRACTION = 10
SOURCE_TYPES = ("book", "paper", "case_study", "note")
EXTRACTED = ("decision", "pattern", "warning", "method", "checklist")
TOPICS = 40
WORDS_A_TITLE, WORDS_EXTRACTED = 5, 25

MAX_CONCURRENT = 3


@dataclass(frozen=True)
class RealPoints:
    """Real items that synthetic points are derived from. `skills`: number of the nearest skill of each."""

    vectors: Matrix
    terms: Sequence[Terms]
    skills: Sequence[int]


def real_points(vectors: Matrix, terms: Sequence[Terms], seed: int = 1) -> RealPoints:
    rng = np.random.default_rng(seed)
    anchors = vectors[rng.choice(len(vectors), SKILLS, replace=len(vectors) < SKILLS)]
    return RealPoints(vectors, terms, (vectors @ anchors.T).argmax(axis=1).tolist())


def skill_name(number: int) -> str:
    return f"skill_{number}"


def skill_points(real: RealPoints) -> list[Point]:
    """Return a point per skill: the centroid of its real items."""
    numbers = np.array(real.skills)
    return [_skill_point(number, real.vectors[numbers == number]) for number in sorted(set(real.skills))]


def _skill_point(number: int, vectors: Matrix) -> Point:
    mean = vectors.mean(axis=0)
    name = skill_name(number)
    fields = {"id": name, "name": name, "description": "", "tool_count": len(vectors), "is_active": True}
    return Point(skill_point_id(name), 1, np.asarray(mean / np.linalg.norm(mean)), {}, fields)


def synthetic_points(real: RealPoints, count: int, batch: int, seed: int = 2) -> Iterator[list[Point]]:
    """Yield points 1 to `count` in batches, deterministic for a seed."""
    rng = np.random.default_rng(seed)
    for start in range(0, count, batch):
        ids = range(start + 1, min(start + batch, count) + 1)
        origins = rng.integers(len(real.vectors), size=len(ids))
        vectors = moved(real.vectors[origins], rng)
        yield [
            _point(real, id_, int(origin), vector, rng)
            for id_, origin, vector in zip(ids, origins, vectors, strict=True)
        ]


def moved(vectors: Matrix, rng: np.random.Generator) -> Matrix:
    noise = rng.standard_normal(vectors.shape, dtype=np.float32)
    noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    shifted = vectors + noise
    return np.asarray(shifted / np.linalg.norm(shifted, axis=1, keepdims=True), dtype=np.float32)


def _point(real: RealPoints, id_: int, origin: int, vector: Matrix, rng: np.random.Generator) -> Point:
    extra = rng.integers(SKILLS, size=int(rng.integers(0, 3)))
    skills = dict.fromkeys([real.skills[origin], *extra.tolist()])
    kind = KINDS[int(rng.choice(len(KINDS), p=KIND_SHARES))]
    names = [skill_name(number) for number in skills]
    fields = {
        "type": kind.value,
        "is_active": bool(rng.random() < ACTIVE_SHARE),
        "skill_ids": names,
        "type_skill": type_skills(kind, names),
        "server": f"server {origin % 997}",
        "name": f"item_{id_}",
        "description": "A generated item that looks like a real one.",
    }
    other = real.terms[int(rng.integers(len(real.terms)))]
    return Point(id_, id_, vector, _exchanged(real.terms[origin], other, rng), fields)


def _exchanged(terms: Terms, other_terms: Terms, rng: np.random.Generator) -> dict[int, float]:
    kept = rng.random(len(terms)) >= EXCHANGED
    taken = rng.random(len(other_terms)) < EXCHANGED
    mixed = {term: weight for (term, weight), take in zip(other_terms.items(), taken, strict=True) if take}
    return mixed | {term: weight for (term, weight), keep in zip(terms.items(), kept, strict=True) if keep}


def synthetic_texts(count: int, seed: int) -> list[str]:
    """Return texts, each about one subject with some words of another, deterministic for a seed."""
    rng = np.random.default_rng(seed)
    names = list(_SUBJECTS)
    return [_text(names[int(rng.integers(len(names)))], names, rng) for _ in range(count)]


def _text(subject: str, names: list[str], rng: np.random.Generator) -> str:
    frames = rng.permutation(len(_FRAMES))[:SENTENCES]
    own, other = _SUBJECTS[subject].split(), _SUBJECTS[names[int(rng.integers(len(names)))]].split()
    return " ".join(_sentence(_FRAMES[int(position)], subject, own, other, rng) for position in frames)


def _sentence(frame: str, subject: str, own: list[str], other: list[str], rng: np.random.Generator) -> str:
    a, b = (own[int(position)] for position in rng.permutation(len(own))[:2])
    c = (other if rng.random() < 1 / 3 else own)[int(rng.integers(len(own)))]
    return frame.format(subject=subject, a=a, b=b, c=c)


@dataclass(frozen=True)
class Vocabulary:
    """One word per stem, by frequency; a word is identified by its position. Texts consist of `phrases`."""

    words: Sequence[str]
    phrases: Sequence[str]
    terms: NDArray[np.uint32]
    reach: NDArray[np.float64]

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Numbers:
        return np.searchsorted(self.reach, rng.random(shape))


def vocabulary_of(texts: Sequence[str]) -> tuple[Vocabulary, list[Numbers]]:
    """Return the vocabulary, and each text as positions in it."""
    tokenized = [without_stop_words(words_of(text)) for text in texts]
    word_of_stem: dict[int, str] = {}
    for word, _ in Counter(word for words in tokenized for word in words).most_common():
        word_of_stem.setdefault(terms_of_word(word)[0], word)
    for word in _made_up():
        if len(word_of_stem) >= WORDS:
            break
        word_of_stem.setdefault(terms_of_word(word)[0], word)
    position_of = {stem: number for number, stem in enumerate(word_of_stem)}
    shares = 1 / (np.arange(len(position_of)) + SHIFT)
    vocabulary = Vocabulary(
        list(word_of_stem.values()),
        [
            word if number % 2 else f"{_FILLERS[number // 2 % 8]} {word}"
            for number, word in enumerate(word_of_stem.values())
        ],
        np.fromiter(word_of_stem, dtype=np.uint32, count=len(word_of_stem)),
        np.cumsum(shares / shares.sum())[:-1],
    )
    return vocabulary, [np.array([position_of[terms_of_word(word)[0]] for word in words]) for words in tokenized]


def _made_up() -> Iterator[str]:
    """Yield made-up words of two or three syllables."""
    syllables = [before + vowel for before, vowel in product("bdfgklmnprstvz", "aeiou")]
    yield from (f"{first}{second}x" for first, second in product(syllables, syllables))
    yield from (f"{first}{second}{third}n" for first, second, third in product(syllables, syllables, syllables))


@dataclass(frozen=True)
class Originals:
    """Texts that documents are derived from, with vectors, and with words as positions in the vocabulary."""

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
    """Return tenants, largest first: it has a fifth of all chunks, half of them have about twenty or fewer."""
    few = np.random.default_rng([seed, 0]).integers(1, min(FEW, max(2, passages // tenants)), size=tenants)
    shares = np.arange(1, tenants + 1) ** -STEEPNESS
    left = max(0, passages - int(few.sum()))
    sizes = few + np.floor(left * shares / shares.sum()).astype(np.int64)
    sizes[0] += passages - sizes.sum()
    return [TenantSize(number, int(size)) for number, size in enumerate(sizes)]


def portions_of(sizes: Sequence[TenantSize], seed: int) -> list[tuple[TenantSize, int]]:
    """Return the portions of all tenants in random order, as in production."""
    listed = [(size, number) for size in sizes for number in range(size.portions)]
    return [listed[position] for position in np.random.default_rng([seed, 1]).permutation(len(listed))]


def subjects_of(originals: Originals, size: TenantSize, seed: int) -> Numbers:
    """Return the texts that a tenant's documents derive from: more texts for a larger tenant."""
    count = min(len(originals.texts), SUBJECTS + size.passages // CHUNKS_A_SUBJECT)
    return np.random.default_rng([seed, 2, size.number]).choice(len(originals.texts), count, replace=False)


def documents_of(originals: Originals, size: TenantSize, portion: int, seed: int) -> Iterator[IndexedDocument]:
    """Yield one portion of a tenant's documents, deterministic for a seed."""
    rng = np.random.default_rng([seed, 3, size.number, portion])
    count = min(PORTION, size.passages - portion * PORTION)
    origins = rng.choice(subjects_of(originals, size, seed), count)
    vectors = moved(originals.vectors[origins], rng)
    added = originals.vocabulary.draw(rng, (count, WORDS_ADDED))
    start = 0
    while start < count:
        length = min(count - start, MAX_EACH, int(rng.geometric(1 / CHUNKS_EACH)))
        words = [
            mixed(originals.words[origins[position]], added[position], rng)
            for position in range(start, start + length)
        ]
        id_ = f"doc-{portion}-{start}"
        yield _document(size.tenant, id_, originals.vocabulary, words, vectors[start : start + length], rng)
        start += length


def mixed(own: Numbers, added: Numbers, rng: np.random.Generator) -> Numbers:
    start = int(rng.integers(max(1, len(own) - WORDS_KEPT)))
    words = np.concatenate([own[start : start + WORDS_KEPT], added])
    return np.asarray(words[rng.permutation(len(words))])


def _document(
    tenant: Tenant,
    id_: str,
    vocabulary: Vocabulary,
    words: Sequence[Numbers],
    vectors: Matrix,
    rng: np.random.Generator,
) -> IndexedDocument:
    metadata = _metadata(" ".join(vocabulary.words[position] for position in words[0][:TITLE_WORDS]), rng)
    passages = []
    start = 0
    for number, (places, vector) in enumerate(zip(words, vectors, strict=True)):
        text = text_of(places, vocabulary)
        passage = TextChunk(number, start, start + len(text), text)
        passages.append(IndexedChunk(passage, vector, terms_of(places, vocabulary)))
        start = passage.end
    header = DocumentHeader(document_key(tenant, id_), id_, metadata, f"{number:032x}", len(passages), version=1)
    return IndexedDocument(header, filterable(metadata), passages)


def text_of(places: Numbers, vocabulary: Vocabulary) -> str:
    phrases = [vocabulary.phrases[place] for place in places.tolist()]
    return "".join(
        " ".join(phrases[start : start + SENTENCE]) + ". " for start in range(0, len(phrases), SENTENCE)
    )


def terms_of(places: Numbers, vocabulary: Vocabulary) -> dict[int, float]:
    distinct, counts = np.unique(places, return_counts=True)
    weights = counts * (K1 + 1) / (counts + K1)
    return dict(zip(vocabulary.terms[distinct].tolist(), weights.tolist(), strict=True))


def _metadata(title: str, rng: np.random.Generator) -> JsonObject:
    any_of = rng.integers(1 << 16, size=8).tolist()
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


@dataclass(frozen=True)
class SyntheticSource:
    """A source with its chunks, extractions and points."""

    source: Source
    chunks: list[Chunk]
    chunk_points: list[Point]
    extractions: dict[str, list[Extraction]]
    extraction_points: list[Point]


def sources_of(originals: Originals, chunks: int, seed: int) -> Iterator[SyntheticSource]:
    """Yield sources, deterministic for a seed."""
    for number in range(-(-chunks // CHUNKS_A_SOURCE)):
        count = min(CHUNKS_A_SOURCE, chunks - number * CHUNKS_A_SOURCE)
        yield _source(originals, number, count, np.random.default_rng([seed, number]))


def _source(originals: Originals, number: int, count: int, rng: np.random.Generator) -> SyntheticSource:
    title = f"Source {number}"
    topics = tuple(f"topic-{topic}" for topic in sorted({*rng.integers(TOPICS, size=3).tolist()}))
    id_ = source_id(f"/made/{number}")
    kind = SOURCE_TYPES[number % len(SOURCE_TYPES)]
    result = SyntheticSource(
        Source(id_, kind, title, f"/made/{number}", ("Somebody",), topics, chunk_count=count), [], [], {}, []
    )
    origins = rng.integers(len(originals.texts), size=count)
    vectors = moved(originals.vectors[origins], rng)
    added = originals.vocabulary.draw(rng, (count, WORDS_ADDED))
    for index in range(count):
        words = mixed(originals.words[origins[index]], added[index], rng)
        text = text_of(words, originals.vocabulary)
        position = Position(
            f"Chapter {index // 40}",
            f"Section {index // 8}",
            index // 3 + 1,
            index * 10 + 1,
            index * 800,
            index * 800,
        )
        chunk = Chunk(chunk_id(id_, text, index), id_, index, text, position, len(words), topics)
        fields = {"source_id": id_, "topics": list(topics)}
        result.chunks.append(chunk)
        result.chunk_points.append(
            Point(point_of(chunk.id), 1, vectors[index], terms_of(words, originals.vocabulary), fields)
        )
        if index % CHUNKS_AN_EXTRACTION == 0:
            _extract(result, chunk, originals, words, vectors[index], rng)
    return result


def _extract(
    result: SyntheticSource,
    chunk: Chunk,
    originals: Originals,
    words: Numbers,
    vector: Vector,
    rng: np.random.Generator,
) -> None:
    kept = words[:WORDS_EXTRACTED]
    kind = EXTRACTED[chunk.number // CHUNKS_AN_EXTRACTION % len(EXTRACTED)]
    title, text = text_of(kept[:WORDS_A_TITLE], originals.vocabulary), text_of(kept, originals.vocabulary)
    extraction = Extraction(
        extraction_id(chunk.id, 0), chunk.source_id, chunk.id, kind, {"title": title, "text": text}, chunk.topics
    )
    fields = {"source_id": extraction.source_id, "chunk_id": chunk.id, "type": kind, "topics": list(chunk.topics)}
    near = moved(vector[None], rng)[0]
    result.extractions[chunk.id] = [extraction]
    result.extraction_points.append(
        Point(point_of(extraction.id), 1, near, terms_of(kept, originals.vocabulary), fields)
    )


async def run_bounded(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run with bounded concurrency. Raise the first failure."""
    running: set[asyncio.Task[None]] = set()
    for coroutine in work:
        if len(running) == MAX_CONCURRENT:
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
        running.add(asyncio.create_task(coroutine))
        await asyncio.sleep(0)
    await asyncio.gather(*running)
