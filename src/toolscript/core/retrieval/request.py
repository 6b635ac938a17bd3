"""A request as the ranking reads it: the whole of it, and its wishes one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolscript.model.models import Matrix, Vector
from toolscript.model.words import STEM_SHARE, SURFACE_SHARE, terms_of_word, without_stop_words, words_of
from toolscript.search.ranking.actions import action_asked, without_phrases, words_in_order
from toolscript.search.ranking.values import without_values
from toolscript.search.ranking.wishes import MOST_WISHES, subject_of, wishes_in

# A corrected word is a guess; a word of a value is seldom what is asked for.
TRUST_IN_A_CORRECTION = 0.8
TRUST_IN_A_VALUE = 0.5
# The text and its wishes.
MOST_TEXTS = 1 + MOST_WISHES

NOTHING_CORRECTED: Mapping[str, str] = {}


@dataclass(frozen=True)
class Wish:
    """`terms` ask the word arm; `stems` are all words said, `subject` those that say what it is about."""

    text: str
    terms: Mapping[int, float]
    stems: frozenset[int]
    subject: frozenset[int]
    action: frozenset[str]


@dataclass(frozen=True)
class Request:
    """`plain` is the text without the values in it; `meant` maps a misspelt word to the one it was read as."""

    text: str
    plain: str
    whole: Wish
    wishes: tuple[Wish, ...]
    plain_stems: frozenset[int]
    meant: Mapping[str, str]

    @property
    def parts(self) -> tuple[Wish, ...]:
        """What the arms are asked, the whole first."""
        return self.whole, *self.wishes

    @property
    def single_wishes(self) -> tuple[Wish, ...]:
        return self.wishes or (self.whole,)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words as they were said, each once; `readfile` of `read_file` is no word a person said."""
        wholes = {_joined(one) for one in self.text.split()}
        said = dict.fromkeys(without_stop_words(words_of(self.text)))
        return tuple(word for word in said if word not in wholes)

    @property
    def texts(self) -> tuple[str, ...]:
        """What has to be embedded, each text once."""
        return tuple(dict.fromkeys((self.text, *(wish.text for wish in self.wishes))))

    def vectors(self, embedded: Matrix) -> list[Vector]:
        """A vector for each part, from those of `texts`."""
        known = dict(zip(self.texts, embedded, strict=True))
        return [known[part.text] for part in self.parts]


def read_request(text: str, meant: Mapping[str, str] = NOTHING_CORRECTED) -> Request:
    plain = without_values(text)
    plain_stems = _stems(_words(plain), meant)
    single = _wish(plain, meant, plain_stems)
    whole = Wish(text, _terms(_words(text), meant, plain_stems), _stems(_words(text), meant), *_about(single))
    wishes = tuple(_wish(one, meant, plain_stems) for one in wishes_in(plain))
    return Request(text, plain, whole, wishes, plain_stems or whole.stems, meant)


def _about(wish: Wish) -> tuple[frozenset[int], frozenset[str]]:
    return wish.subject, wish.action


def _wish(text: str, meant: Mapping[str, str], plain_stems: frozenset[int]) -> Wish:
    words = _words(text)
    stems = _stems(words, meant)
    # Words too common to be asked for are rare in no catalog that is asked: they would count the most.
    subject = _stems(subject_of(text), meant) & stems or stems
    return Wish(text, _terms(words, meant, plain_stems), stems, subject, action_asked(words_in_order(text)))


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(without_stop_words(words_of(without_phrases(text)))))


def _stems(words: Sequence[str], meant: Mapping[str, str]) -> frozenset[int]:
    return frozenset(terms_of_word(meant.get(word, word))[0] for word in words)


def _terms(words: Sequence[str], meant: Mapping[str, str], plain_stems: frozenset[int]) -> dict[int, float]:
    """Each word once, however often it is said."""
    terms: dict[int, float] = {}
    for word in words:
        stem, surface = terms_of_word(meant.get(word, word))
        trust = (TRUST_IN_A_CORRECTION if word in meant else 1.0) * (
            1.0 if stem in plain_stems else TRUST_IN_A_VALUE
        )
        terms.setdefault(stem, STEM_SHARE * trust)
        terms.setdefault(surface, SURFACE_SHARE * trust)
    return terms


def _joined(run: str) -> str:
    *parts, last = words_of(run) or [""]
    return last if parts and last == "".join(parts) else ""
