"""A request as the ranking reads it: literals, sub-queries, actions and subjects."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files

from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.rewriting import Reading, Rewriter, default_rewriter
from toolscript.core.retrieval.terms import (
    STEM_SHARE,
    STOP_WORDS,
    SURFACE_SHARE,
    is_plain,
    query_terms,
    terms_of_word,
    without_stop_words,
    words_by_run,
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
    | (?i:FILE_NAME)
    | \b\d[\d.,:%-]{0,60}\b
    | \b(?=[^\W\d]{0,60}\d)\w{9,}\b""".replace("FILE_NAME", default_rewriter().file_name),
    re.VERBOSE,
)
# Characters that no text has: each stands for a literal.
_FIRST_MARK = 0xE000
_MARKS = re.compile("[\ue000-\uf8ff]")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_SPACE = re.compile(r"\s+")

# With fewer words left, the literals are the request.
MIN_WORDS = 2
# A word of so many letters has no ending to take off: `raed` is no form of `rae`.
SHORT_WORD = 4
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

# Every repetition is bounded or cannot restart inside itself: a hostile text takes linear time.
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
_WORD_RUN = re.compile(r"[^\W_]+")

# A corrected word is a guess; a synonym is not what was typed; a word of a literal is seldom what the request is
# about.
CORRECTION_WEIGHT = 0.8
SYNONYM_WEIGHT = 0.8
LITERAL_WEIGHT = 0.5
# The text and its sub-queries.
MAX_TEXTS = 1 + MAX_SUBQUERIES

NO_CORRECTIONS: Mapping[str, str] = {}


def without_literals(text: str) -> str:
    return _SPACE.sub(" ", _VALUES.sub(" ", text)).strip()


@lru_cache(maxsize=512)
def strip_literals(text: str) -> str:
    """Remove the literals, unless they are the request. Cached: it is corrected, then parsed."""
    plain = without_literals(text)
    words = [word for word in _LETTERS.findall(plain.casefold()) if word not in STOP_WORDS]
    return plain if len(words) >= MIN_WORDS else text


def _english_words(name: str) -> tuple[str, ...]:
    return tuple(str(_TABLE[name]).split())


VERBS = _english_words("verbs")
_VERBS = frozenset(VERBS)
LEAD_IN = frozenset(_english_words("lead_in"))
PREPOSITIONS = frozenset(_english_words("prepositions"))
SAY_LITTLE = frozenset(_english_words("say_little"))


@lru_cache(maxsize=512)
def strip_phrases(text: str) -> str:
    """Replace idioms by the word they mean: `get rid of` does not get anything. Cached: a search asks often."""
    return _PHRASES.sub(lambda match: PHRASES.get(match[0].casefold(), match[0]), text)


def words_in_order(text: str) -> list[str]:
    return _WORD.findall(strip_phrases(text).casefold())


def kinds_of(word: str) -> frozenset[str]:
    """Return the kinds of action a word stands for, in any of its forms."""
    return next((_KINDS_OF[form] for form in _forms(word) if form in _KINDS_OF), frozenset())


def requested_action(words: Iterable[str]) -> frozenset[str]:
    """Return the kinds of action of the first verb of a sub-query; the words after it are the object.

    After other words only a base form is a verb: `changes` in `commit my changes` is none.
    """
    opening = list(words)[:FIRST_WORDS]
    first, *rest = [word for word in opening if word not in LEAD_IN or word in _KINDS_OF] or [""]
    return kinds_of(first) or next((_KINDS_OF[word] for word in rest if word in _KINDS_OF), frozenset())


def actions_named(name_words: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(kinds_of(word) for word in name_words))


def agreement(requested: frozenset[str], named: frozenset[str]) -> float:
    """Return 1 if the actions overlap, -1 if they differ, 0 if one side has none."""
    if not requested or not named:
        return 0.0
    return 1.0 if requested & named else -1.0


def is_english(word: str) -> bool:
    """Return whether a word, or its base form, is a common English word, and so not misspelt."""
    return any(form in _english() for form in _forms(word))


@cache
def _english() -> frozenset[str]:
    return frozenset((files(__package__) / "english_words.txt").read_text("ascii").split())


def _forms(word: str) -> Iterator[str]:
    yield word
    if word.endswith("ing"):
        yield from (word[:-3], word[:-3] + "e")
    if word.endswith("s"):
        yield word[:-1]
    if word.endswith("ed") and len(word) > SHORT_WORD:
        yield from (word[:-2], word[:-1])


_JOINTS = re.compile(
    r"(?:(?<!\s)\s++)?(?:,\s*(?:and\s+then|and\s+also|and|then|plus|as well as|while|before|followed by)"
    r"|\band\s+then\b|\bthen\b|\band also\b|\bas well as\b|\bafter that\b|\bfollowed by\b|\band\b|\bbefore\b|,)\s+"
    rf"(?={_LEADING}(?:{'|'.join(VERBS)})(?:ing|s|ed)?\b)",
    re.IGNORECASE,
)


def subqueries_in(text: str) -> list[str]:
    """Return the sub-queries of a request that has several; none for a single one."""
    subqueries: list[str] = []
    for clause in (part for sentence in _SENTENCES.split(text) for part in _JOINTS.split(sentence)):
        subquery = _LEFT_BEHIND.sub("", clause).strip(" ,;")
        if _has_enough_words(subquery):
            subqueries.append(subquery)
        elif subqueries and subquery:
            subqueries[-1] += f" {subquery}"
    return subqueries[:MAX_SUBQUERIES] if len(subqueries) > 1 else []


def subject_of(subquery: str) -> list[str]:
    """Return the object of a sub-query: the words between its verb and the first preposition, `blobs` of
    `show me the blobs in the container`."""
    words = words_in_order(subquery)
    start = next((index for index, word in enumerate(words) if not _leads_in(word)), len(words))
    subject: list[str] = []
    for word in words[start:]:
        if word in PREPOSITIONS and any(chosen not in SAY_LITTLE for chosen in subject):
            break
        if word not in PREPOSITIONS and word not in LEAD_IN:
            subject.append(word)
    return [word for word in subject if word not in SAY_LITTLE] or subject


def _leads_in(word: str) -> bool:
    return word in LEAD_IN or bool(kinds_of(word))


def _has_enough_words(subquery: str) -> bool:
    words = [word for word in _LONG_WORD.findall(subquery.casefold()) if word not in STOP_WORDS]
    return len(words) >= MIN_WORDS or (bool(words) and words[0] in default_rewriter().words["steps"])


@dataclass(frozen=True)
class Pattern:
    """The words of a rule. Each is the stems of its parts, and the stem of the whole for an identifier.

    `pull-request` is in a text that has `pull` and `request`, and in one that has `pullrequest`.
    """

    text: str
    words: tuple[tuple[frozenset[int], int | None], ...]

    @cached_property
    def stems(self) -> frozenset[int]:
        wholes = (whole for _, whole in self.words if whole is not None)
        return frozenset(wholes).union(*(parts for parts, _ in self.words))

    def is_in(self, stems: frozenset[int]) -> bool:
        """Return whether a text with these stems has all the words."""
        return all(parts <= stems or whole in stems for parts, whole in self.words)


@lru_cache(maxsize=8_192)
def pattern_of(text: str) -> Pattern:
    """Return the words of a text as a pattern. A text of nothing but stop words has none.

    Cached: when rules change, most of them stay.
    """
    return Pattern(text, tuple(filter(None, map(_pattern_word, words_by_run(strip_phrases(text))))))


def _pattern_word(words: Sequence[str]) -> tuple[frozenset[int], int | None] | None:
    *parts, last = words
    whole = last if parts and last == "".join(parts) else None
    counted = [word for word in (parts if whole else words) if word not in STOP_WORDS]
    if not (counted or whole):
        return None
    stems = frozenset(terms_of_word(word)[0] for word in counted or words[-1:])
    return stems, None if whole is None else terms_of_word(whole)[0]


@dataclass(frozen=True)
class AppliedSynonym:
    """A meaning that words of a request have: an item with the meaning has the stems in `source`, too."""

    source: frozenset[int]
    meaning: Pattern


@dataclass(frozen=True)
class SubQuery:
    """A sub-query: `text` to embed, `terms` for sparse retrieval, `stems` of all words and of its `subject`.

    `verb` is the stem of a verb at its start that stands for no kind of action, such as `pin`.
    """

    text: str
    terms: Mapping[int, float]
    stems: frozenset[int]
    subject: frozenset[int]
    action: frozenset[str]
    verb: int | None = None


@dataclass(frozen=True)
class Request:
    """A parsed request. `plain` is the text without literals; `corrections` maps misspelt words to known ones.

    `synonyms` are those that a person's rules give to words of this request.
    """

    text: str
    plain: str
    whole: SubQuery
    subqueries: tuple[SubQuery, ...]
    plain_stems: frozenset[int]
    corrections: Mapping[str, str]
    synonyms: tuple[AppliedSynonym, ...] = ()
    reading: Reading | None = None

    @property
    def typed(self) -> str:
        return self.text if self.reading is None else self.reading.typed

    @property
    def typed_stems(self) -> frozenset[int]:
        """The stems of the words as they were typed: rules of a person are about these, too."""
        if self.reading is None or self.reading.typed == self.text:
            return frozenset()
        return _stems(_words(self.reading.typed), self.corrections)

    @property
    def parts(self) -> tuple[SubQuery, ...]:
        """All queries for the retrievers, the whole request first."""
        return self.whole, *self.subqueries

    @property
    def single_subqueries(self) -> tuple[SubQuery, ...]:
        return self.subqueries or (self.whole,)

    @cached_property
    def steps(self) -> "tuple[Request, ...]":
        """The sub-queries, each as a request of its own; none if this is a request for a single thing."""
        return tuple(
            self._step(text, step) for text, step in zip(self._steps_as_written(), self.subqueries, strict=True)
        )

    def _step(self, text: str, step: SubQuery) -> "Request":
        synonyms = tuple(synonym for synonym in self.synonyms if synonym.source <= step.stems)
        return Request(
            text, step.text, step, (), step.stems, self.corrections, synonyms, _reading_of_step(self.reading, text)
        )

    def _steps_as_written(self) -> list[str]:
        """Return the sub-queries with their literals. While the text is split, a mark stands for each of these."""
        literals: list[str] = []

        def marked(match: re.Match[str]) -> str:
            literals.append(match[0])
            return chr(_FIRST_MARK + len(literals) - 1)

        has_literals = self.plain != self.text and not _MARKS.search(self.text)
        split = subqueries_in(_SPACE.sub(" ", _VALUES.sub(marked, self.text))) if has_literals else []
        steps = [_MARKS.sub(lambda match: literals[ord(match[0]) - _FIRST_MARK], step) for step in split]
        # In rare texts a literal changes where the text is split.
        return steps if len(steps) == len(self.subqueries) else [step.text for step in self.subqueries]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the text, each once, without joined identifiers such as `readfile` of `read_file`."""
        joined = {_joined(run) for run in self.text.split()}
        words = dict.fromkeys(without_stop_words(words_of(self.text)))
        return tuple(word for word in words if word not in joined)

    @cached_property
    def stems_of_words(self) -> Mapping[str, int]:
        return {word: self.stem_of(word) for word in self.words}

    def stem_of(self, word: str) -> int:
        """Return the stem of a word, corrected if it is misspelt."""
        return terms_of_word(self.corrections.get(word, word))[0]

    def meanings_of(self, stem: int) -> list[Pattern]:
        """Return what a word of this request means by synonyms."""
        return [synonym.meaning for synonym in self.synonyms if stem in synonym.source]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to embed, each once."""
        return tuple(dict.fromkeys(part.text for part in self.parts))

    def vectors(self, embedded: Matrix) -> list[Vector]:
        """Return a vector for each part, from those of `texts`."""
        vector_of = dict(zip(self.texts, embedded, strict=True))
        return [vector_of[part.text] for part in self.parts]


def parse_query(request: str | Reading, corrections: Mapping[str, str] = NO_CORRECTIONS) -> Request:
    """Parse a request as it was typed, or as it was read; only then its words have synonyms."""
    if isinstance(request, str):
        return _parse(request, corrections)
    parsed = replace(_parse(request.text, corrections), reading=request)
    return with_synonyms(
        parsed, [*_meanings(request), *_synonyms_of(request.rewriter).matching(parsed.whole.stems)]
    )


def _parse(text: str, corrections: Mapping[str, str]) -> Request:
    plain = strip_literals(text)
    plain_words = _words(plain)
    plain_stems = _stems(plain_words, corrections)
    words, stems = plain_words, plain_stems
    if plain != text:
        words = _words(text)
        stems = _stems(words, corrections)
    whole = SubQuery(
        _corrected(text, corrections),
        _terms(words, corrections, plain_stems),
        stems,
        *_subject_action_verb(plain, plain_stems, corrections),
    )
    subqueries = tuple(_subquery(subquery, corrections, plain_stems) for subquery in subqueries_in(plain))
    return Request(text, plain, whole, subqueries, plain_stems or whole.stems, corrections)


def _subquery(text: str, corrections: Mapping[str, str], plain_stems: frozenset[int]) -> SubQuery:
    words = _words(text)
    stems = _stems(words, corrections)
    return SubQuery(
        _corrected(text, corrections),
        _terms(words, corrections, plain_stems),
        stems,
        *_subject_action_verb(text, stems, corrections),
    )


def _subject_action_verb(
    text: str, stems: frozenset[int], corrections: Mapping[str, str]
) -> tuple[frozenset[int], frozenset[str], int | None]:
    # Stop words are in no index, so they would get the highest IDF: leave them out.
    subject = _stems(subject_of(text), corrections) & stems or stems
    words = words_in_order(text)
    first = next((word for word in words if word not in LEAD_IN), "")
    read_as = corrections.get(first, first)
    verb = terms_of_word(read_as)[0] if read_as in _VERBS and not kinds_of(read_as) else None
    return subject, requested_action(words), verb


def _corrected(text: str, corrections: Mapping[str, str]) -> str:
    """Return the text with corrected spelling: a model knows nothing of a misspelt word."""
    if not corrections:
        return text
    return _WORD_RUN.sub(lambda match: corrections.get(match[0].casefold(), match[0]), text)


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(without_stop_words(words_of(strip_phrases(text)))))


def _stems(words: Sequence[str], corrections: Mapping[str, str]) -> frozenset[int]:
    return frozenset(terms_of_word(corrections.get(word, word))[0] for word in words)


def _terms(words: Sequence[str], corrections: Mapping[str, str], plain_stems: frozenset[int]) -> dict[int, float]:
    """Return the terms of the words, each once however often it occurs."""
    terms: dict[int, float] = {}
    for word in words:
        stem, surface = terms_of_word(corrections.get(word, word))
        trust = (CORRECTION_WEIGHT if word in corrections else 1.0) * (
            1.0 if stem in plain_stems else LITERAL_WEIGHT
        )
        terms.setdefault(stem, STEM_SHARE * trust)
        terms.setdefault(surface, SURFACE_SHARE * trust)
    return terms


@dataclass(frozen=True)
class Synonym:
    """Words of requests, and what they mean."""

    words: Pattern
    meaning: Pattern

    @cached_property
    def terms(self) -> Mapping[int, float]:
        """The terms of the meaning."""
        return query_terms(self.meaning.text)


def _meanings(reading: Reading) -> list[Synonym]:
    """What was typed still counts: an item that has the short form has what it stands for."""
    meanings = ((pattern_of(meaning), pattern_of(typed)) for typed, meaning in reading.meanings.items())
    return [Synonym(words, typed) for words, typed in meanings if words.stems and typed.stems]


class Synonyms:
    """Synonyms by the stem of their words, of which each has one."""

    def __init__(self, synonyms: Mapping[str, str]) -> None:
        self._by_stem: dict[int, list[Synonym]] = {}
        for words, meaning in synonyms.items():
            # Words that are nothing but stop words stand for nothing, and nothing has them.
            if (pattern := pattern_of(words)).stems and (meant := pattern_of(meaning)).stems:
                self._by_stem.setdefault(min(pattern.stems), []).append(Synonym(pattern, meant))

    def matching(self, stems: frozenset[int]) -> list[Synonym]:
        near = (synonym for stem in stems if stem in self._by_stem for synonym in self._by_stem[stem])
        return sorted((one for one in near if one.words.is_in(stems)), key=lambda one: one.words.text)


@lru_cache(maxsize=8)
def _synonyms_of(rewriter: Rewriter) -> Synonyms:
    return Synonyms(rewriter.synonyms)


def _reading_of_step(reading: Reading | None, text: str) -> Reading | None:
    """Return the reading of a step of a request: its text is read already, and it names products of its own."""
    if reading is None:
        return None
    words = {word.casefold() for word in _LETTERS.findall(text)}
    return Reading(
        text, text, reading.rewriter, products=tuple(name for name in reading.products if name in words)
    )


def with_synonyms(request: Request, synonyms: Sequence[Synonym], *, as_meant: bool = False) -> Request:
    """Return the request with the meanings that its words have by these synonyms.

    `as_meant`: a person says so of this catalog, so that the meaning is embedded in place of the words.
    """
    if not synonyms:
        return request
    if as_meant:
        request = replace(
            request,
            whole=_as_meant(request.whole, synonyms),
            subqueries=tuple(_as_meant(query, synonyms) for query in request.subqueries),
        )
    applied = tuple(AppliedSynonym(one.words.stems & request.whole.stems, one.meaning) for one in synonyms)
    return replace(
        request,
        whole=_widened(request.whole, synonyms, request.plain_stems),
        subqueries=tuple(_widened(query, synonyms, request.plain_stems) for query in request.subqueries),
        synonyms=(*applied, *request.synonyms) if as_meant else (*request.synonyms, *applied),
    )


def _as_meant(query: SubQuery, synonyms: Sequence[Synonym]) -> SubQuery:
    """Return the query with the text that the words mean in their place, or else behind it."""
    text = query.text
    for one in synonyms:
        if one.words.is_in(query.stems):
            words = rf"\b{re.escape(one.words.text)}\w{{0,3}}\b"
            text, found = re.subn(words, one.meaning.text.replace("\\", r"\\"), text, flags=re.IGNORECASE)
            text = text if found else f"{text} {one.meaning.text}"
    return replace(query, text=text)


def _widened(query: SubQuery, synonyms: Sequence[Synonym], plain_stems: frozenset[int]) -> SubQuery:
    """Add the terms of what the words mean, below the weight of typed words."""
    terms = dict(query.terms)
    for one in synonyms:
        if one.words.is_in(query.stems):
            trust = SYNONYM_WEIGHT * (1.0 if one.words.is_in(plain_stems) else LITERAL_WEIGHT)
            for term, weight in one.terms.items():
                terms.setdefault(term, trust * weight)
    return replace(query, terms=terms)


def _joined(run: str) -> str:
    if is_plain(run):
        return ""
    *parts, last = words_of(run) or [""]
    return last if parts and last == "".join(parts) else ""
