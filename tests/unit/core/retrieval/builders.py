"""Candidates by letter, catalogs of a given size, and hostile texts."""

import time
from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.rerank import Features
from toolscript.core.retrieval.terms import terms_of_word

LETTERS = "abcdefgh"
LIMIT = 100

HOSTILE_CHARACTERS = 8_000
# A quadratic algorithm takes five seconds or more on so many characters.
MAX_SECONDS = 1.0
HOSTILE = [
    *("<", "<a", "'", " '", '"', "“", "`", "{", "[", "@", "a@ ", "https://", " /a", "/a", "1.", "1:", "a1_", "é"),
    *(" ", "\t", "\n", ".", ",", ", ", "!?;", " ;", "。", "and ", "then ", ", and then ", "before ", "thanks "),
    *("please ", "i also ", "i would like to ", "let's ", "and i also like to ", "get and ", ". thank you"),
]

WORDS = (
    *(
        "get",
        "show",
        "create",
        "deleting",
        "and",
        "then",
        "also",
        "please",
        "i",
        "would",
        "like",
        "to",
        "the",
        "of",
    ),
    *(
        "file",
        "files",
        "weather",
        "letter",
        "in",
        "with",
        "before",
        "info",
        "читать",
        "日本語",
        "don't",
        "read_file",
    ),
    *('"a b"', "<x>", "42", "/a/b", "a@b.org", "{}", "[1]", "'s", "a1b2c3d4e5", ",", ".", ";", "\n", "thanks"),
)
RequestTexts = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=60)


def seconds_for(work: Callable[[str], object], text: str) -> float:
    """Return the CPU time of this thread: other load on the machine does not count."""
    began = time.thread_time()
    work(text)
    return time.thread_time() - began


def id_of(letter: str) -> int:
    return LETTERS.index(letter) + 1


def letters(ids: Sequence[int]) -> str:
    return "".join(LETTERS[id_ - 1] for id_ in ids)


def hits_of(**scores: float) -> list[Candidate]:
    """`hits_of(a=0.9)`: the candidate with id 1 has score 0.9; sorted, best first."""
    hits = [Candidate(id_of(letter), score) for letter, score in scores.items()]
    return sorted(hits, key=lambda hit: -hit.score)


def stem(word: str) -> int:
    return terms_of_word(word)[0]


def stems(text: str) -> frozenset[int]:
    return frozenset(map(stem, text.split()))


def having(name: str, text: str = "") -> Features:
    """Return the features of a tool with this name and these words."""
    return Features(name, stems(f"{name.replace('_', ' ')} {text}"))


def catalog(points: int, shares: Mapping[str, float] | None = None) -> Candidates:
    return Candidates(points=points, shares={stem(word): share for word, share in (shares or {}).items()})


Cosines = st.floats(-1, 1)
# Far enough apart to have a spread, or equal.
WordScores = st.integers(1, 400).map(lambda tenths: tenths / 10)
Ids = st.integers(1, 40)
DenseArms = st.none() | st.dictionaries(Ids, Cosines, max_size=12).map(
    lambda scores: sorted((Candidate(*pair) for pair in scores.items()), key=lambda hit: -hit.score)
)
WordArms = st.none() | st.dictionaries(Ids, WordScores, max_size=12).map(
    lambda scores: sorted((Candidate(*pair) for pair in scores.items()), key=lambda hit: -hit.score)
)
CandidateSets = st.lists(st.builds(Candidates, DenseArms, WordArms, st.integers(0, 10**6)), min_size=1, max_size=4)
