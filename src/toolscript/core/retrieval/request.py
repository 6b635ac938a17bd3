"""A request as the ranking reads it: literals, sub-queries, actions and subjects."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.terms import (
    STEM_SHARE,
    STOP_WORDS,
    SURFACE_SHARE,
    terms_of_word,
    without_stop_words,
    words_of,
)

_VALUES = re.compile(
    r"""<[^<>\n]{1,60}>
    | "[^"\n]{1,200}"
    | “[^”\n]{1,200}”
    | (?<!\w)'[^'\n]{1,120}'(?!\w)
    | `[^`\n]{1,200}`
    | https?://\S{1,500}
    | \{[^{}]{0,400}\}
    | \[[^\[\]]{1,200}\]
    | (?<!\S)[^\s@]{1,64}@[^\s@]{1,190}(?!\S)
    | (?<![\w/])/(?:[\w.-]{1,100}/){1,20}[\w.-]{0,100}
    | \b\d[\d.,:%-]{0,60}\b
    | \b(?=[^\W\d]{0,60}\d)\w{9,}\b""",
    re.VERBOSE,
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_SPACE = re.compile(r"\s+")

# With fewer words than these left, the values were the request.
MIN_WORDS = 2
_TABLE = tomllib.loads((files(__package__) / "english.toml").read_text("utf-8"))
ACTIONS = {kind: frozenset(str(words).split()) for kind, words in _TABLE["actions"].items()}
PHRASES = {str(phrase): str(word) for phrase, word in _TABLE["phrases"].items()}
FIRST_WORDS = 14

_PHRASES = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:'\w+)?")
_KINDS_OF = {
    word: frozenset(kind for kind, words in ACTIONS.items() if word in words)
    for word in frozenset().union(*ACTIONS.values())
}

MAX_SUBQUERIES = 6

# Every repetition is bounded, or begins where it cannot begin once more: a hostile text takes linear time.
_LEADING = (
    r"(?:(?:please|also|finally|then|next|lastly|additionally|furthermore|moreover|afterwards?|could you|can you"
    r"|i(?:'d| would| also|'m| am|'ll| will)?(?: also)?(?: like| want| need| have| looking)?(?: to| for)?"
    r"|we(?:'d| need| want| would)?(?: like| also)?(?: to)?|to|help me|help us|be|let me|let us|let's)\s+){0,5}"
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])\s*|\n+")

_LEFT_BEHIND = re.compile(
    r"(?<![\s,.;!?])[\s,.;!?]++"
    r"(?:then|finally|first|next|also|lastly|additionally|secondly|and|thank you|thanks)\s*$",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"[^\W_]{2,}")

# A corrected word is a guess; a word of a value is seldom what is asked for.
TRUST_IN_A_CORRECTION = 0.8
TRUST_IN_A_LITERAL = 0.5
# The text and its wishes.
MAX_TEXTS = 1 + MAX_SUBQUERIES

NOTHING_CORRECTED: Mapping[str, str] = {}


def strip_literals(text: str) -> str:
    left = _SPACE.sub(" ", _VALUES.sub(" ", text)).strip()
    said = [word for word in _LETTERS.findall(left.casefold()) if word not in STOP_WORDS]
    return left if len(said) >= MIN_WORDS else text


def _english_words(name: str) -> tuple[str, ...]:
    return tuple(str(_TABLE[name]).split())


VERBS = _english_words("verbs")
LEAD_IN = frozenset(_english_words("lead_in"))
PREPOSITIONS = frozenset(_english_words("prepositions"))
SAY_LITTLE = frozenset(_english_words("say_little"))


def strip_phrases(text: str) -> str:
    """A phrase that means one word is that word: nothing is got by getting rid of it."""
    return _PHRASES.sub(lambda match: PHRASES.get(match[0].casefold(), match[0]), text)


def words_in_order(text: str) -> list[str]:
    return _WORD.findall(strip_phrases(text).casefold())


def kinds_of(word: str) -> frozenset[str]:
    """The kinds of action a word stands for, in whichever form it is said."""
    return next((_KINDS_OF[form] for form in _forms(word) if form in _KINDS_OF), frozenset())


def action_asked(words: Iterable[str]) -> frozenset[str]:
    """Of the first verb of a wish: what follows it is what it is to be done with.

    After other words only a plain form is a verb: the changes of `commit my changes` change nothing.
    """
    begins = list(words)[:FIRST_WORDS]
    first, *others = [word for word in begins if word not in LEAD_IN or word in _KINDS_OF] or [""]
    return kinds_of(first) or next((_KINDS_OF[word] for word in others if word in _KINDS_OF), frozenset())


def actions_named(name_words: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(kinds_of(word) for word in name_words))


def agreement(asked: frozenset[str], named: frozenset[str]) -> float:
    """1 when they meet, -1 when both speak and do not, 0 when one is silent."""
    if not asked or not named:
        return 0.0
    return 1.0 if asked & named else -1.0


def _forms(word: str) -> Iterator[str]:
    yield word
    if word.endswith("ing"):
        yield from (word[:-3], word[:-3] + "e")
    if word.endswith("s"):
        yield word[:-1]
    if word.endswith("ed"):
        yield from (word[:-2], word[:-1])


_JOINTS = re.compile(
    r"(?:(?<!\s)\s++)?(?:,\s*(?:and\s+then|and\s+also|and|then|plus|as well as|while|before|followed by)"
    r"|\band\s+then\b|\bthen\b|\band also\b|\bas well as\b|\bafter that\b|\bfollowed by\b|\band\b|\bbefore\b|,)\s+"
    rf"(?={_LEADING}(?:{'|'.join(VERBS)})(?:ing|s|ed)?\b)",
    re.IGNORECASE,
)


def subqueries_in(text: str) -> list[str]:
    """The single wishes of a request that has several; none of a request that has one."""
    wishes: list[str] = []
    for piece in (part for sentence in _SENTENCES.split(text) for part in _JOINTS.split(sentence)):
        subquery = _LEFT_BEHIND.sub("", piece).strip(" ,;")
        if _says_enough(subquery):
            wishes.append(subquery)
        elif wishes and subquery:
            wishes[-1] += f" {subquery}"
    return wishes[:MAX_SUBQUERIES] if len(wishes) > 1 else []


def subject_of(subquery: str) -> list[str]:
    """What the wish is about: the words between its verb and the first preposition, `blobs` of
    `show me the blobs in the container`."""
    words = words_in_order(subquery)
    start = next((index for index, word in enumerate(words) if not _leads_in(word)), len(words))
    subject: list[str] = []
    for word in words[start:]:
        if word in PREPOSITIONS and any(one not in SAY_LITTLE for one in subject):
            break
        if word not in PREPOSITIONS and word not in LEAD_IN:
            subject.append(word)
    return [word for word in subject if word not in SAY_LITTLE] or subject


def _leads_in(word: str) -> bool:
    return word in LEAD_IN or bool(kinds_of(word))


def _says_enough(subquery: str) -> bool:
    said = [word for word in _LONG_WORD.findall(subquery.casefold()) if word not in STOP_WORDS]
    return len(said) >= MIN_WORDS


@dataclass(frozen=True)
class SubQuery:
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
    whole: SubQuery
    wishes: tuple[SubQuery, ...]
    plain_stems: frozenset[int]
    meant: Mapping[str, str]

    @property
    def parts(self) -> tuple[SubQuery, ...]:
        """What the arms are asked, the whole first."""
        return self.whole, *self.wishes

    @property
    def single_subqueries(self) -> tuple[SubQuery, ...]:
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
        return tuple(dict.fromkeys((self.text, *(subquery.text for subquery in self.wishes))))

    def vectors(self, embedded: Matrix) -> list[Vector]:
        """A vector for each part, from those of `texts`."""
        known = dict(zip(self.texts, embedded, strict=True))
        return [known[part.text] for part in self.parts]


def parse_query(text: str, meant: Mapping[str, str] = NOTHING_CORRECTED) -> Request:
    plain = strip_literals(text)
    plain_stems = _stems(_words(plain), meant)
    single = _subquery(plain, meant, plain_stems)
    whole = SubQuery(
        text,
        _terms(_words(text), meant, plain_stems),
        _stems(_words(text), meant),
        single.subject,
        single.action,
    )
    wishes = tuple(_subquery(one, meant, plain_stems) for one in subqueries_in(plain))
    return Request(text, plain, whole, wishes, plain_stems or whole.stems, meant)


def _subquery(text: str, meant: Mapping[str, str], plain_stems: frozenset[int]) -> SubQuery:
    words = _words(text)
    stems = _stems(words, meant)
    # Words too common to be asked for are rare in no catalog that is asked: they would count the most.
    subject = _stems(subject_of(text), meant) & stems or stems
    return SubQuery(text, _terms(words, meant, plain_stems), stems, subject, action_asked(words_in_order(text)))


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(without_stop_words(words_of(strip_phrases(text)))))


def _stems(words: Sequence[str], meant: Mapping[str, str]) -> frozenset[int]:
    return frozenset(terms_of_word(meant.get(word, word))[0] for word in words)


def _terms(words: Sequence[str], meant: Mapping[str, str], plain_stems: frozenset[int]) -> dict[int, float]:
    """Each word once, however often it is said."""
    terms: dict[int, float] = {}
    for word in words:
        stem, surface = terms_of_word(meant.get(word, word))
        trust = (TRUST_IN_A_CORRECTION if word in meant else 1.0) * (
            1.0 if stem in plain_stems else TRUST_IN_A_LITERAL
        )
        terms.setdefault(stem, STEM_SHARE * trust)
        terms.setdefault(surface, SURFACE_SHARE * trust)
    return terms


def _joined(run: str) -> str:
    *parts, last = words_of(run) or [""]
    return last if parts and last == "".join(parts) else ""
