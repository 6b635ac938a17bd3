"""The terms that say what an item is about: words, and pairs of them, of its name, server and first sentence.

Verbs, stop words and words of no subject are left out. Later sentences speak of arguments and limits.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from toolscript.core.items import Item
from toolscript.core.retrieval.terms import STOP_WORDS, split_identifier, terms_of_word
from toolscript.tools.skills.sentences import MAX_SENTENCE, first_sentence
from toolscript.tools.skills.subjects import VERBS, words_in

WORD = re.compile(r"[^\W\d_][^\W_]*(?:[-.][^\W_]+)*")

# Nouns that a term is only where nothing says more, such as "users"; no part of a pair.
WEAK = words_in("weak")
# Nouns of many subjects: pages of a wiki, or of a book.
BROAD = words_in("broad")
GENERIC = words_in("generic") - WEAK
# Plural nouns that share their stem with a verb.
_NOUNS = words_in("nouns")
# Verbs that are nouns after another noun: "file share", "audit log".
_SECONDS = words_in("seconds")
# Verbs that are the second word of no name.
_ACTIONS_ONLY = VERBS - _NOUNS - _SECONDS
# "AI-powered", "read-only": an adjective, whatever comes before the hyphen.
_ADJECTIVES = re.compile(
    r"-(?:aware|based|by|defined|demand|driven|existing|friendly|in|known|level|only|powered|ready|related|run|side"
    r"|specific|time|to|up|wide)$"
)
# What follows a name in so many texts that it says nothing.
_EMPTY_FOLLOWERS = frozenset(["api", "app", "mcp", "platform", "tool", "tools", "using", "via"])
_PUNCTUATION = re.compile(r"[-_/@]+")
# Names of people and things have apostrophes: "Rosa's Diner".
_NAME_WORD = re.compile(r"[^\W\d_][^\W_]*(?:[-.'][^\W_]+)*")
_PROTOCOL = frozenset(["api", "apis", "mcp", "model", "context", "protocol", "server", "servers", "tool", "tools"])
_NAME_PARTS = re.compile(r"[^a-z0-9]+")

Term = tuple[int, ...]


@dataclass(frozen=True)
class Sampled:
    """The terms of an item, each with the words it was written with.

    `described` are those of the description, `identified` pairs that a name joins: "Key Vault", if the server is
    called `keyvault`. `after` and `before` are the words around a term in the description.
    """

    terms: Mapping[Term, str]
    described: frozenset[Term]
    identified: frozenset[Term]
    after: Mapping[Term, str]
    before: Mapping[Term, str]
    server: str


@dataclass(frozen=True)
class _Word:
    """`is_joined`: nothing but a space or a hyphen is between it and the word before."""

    text: str
    stem: int
    is_term: bool
    is_joined: bool


def sampled(item: Item, actions: frozenset[str] = VERBS) -> Sampled:
    """Return the terms of an item. Descriptions come first: they spell a word as people do, and names do not."""
    terms: dict[Term, str] = {}
    after: dict[Term, str] = {}
    before: dict[Term, str] = {}
    server = list(_words(_own_name(item.server), actions))
    name = list(_words(split_identifier(item.name), actions))
    stems = frozenset(word.stem for word in (*server, *name))
    _collect(list(_words(first_sentence(item.description), actions, stems)), terms, after, before)
    described = frozenset(terms)
    # A name that starts with the server's says it twice.
    start = next((place for place, word in enumerate(name) if word.stem not in {one.stem for one in server}), 0)
    _collect(name[start:], terms, {}, {})
    for word in server:
        if word.is_term:
            terms.setdefault((word.stem,), word.text)
    identified = _identified(item)
    return Sampled(
        {**terms, **identified},
        described | identified.keys(),
        frozenset(identified),
        after,
        before,
        item.server,
    )


def _own_name(server: str) -> str:
    """Return the name of a server without its publisher: "notes" of `io.github.somebody/notes`."""
    last = server.rpartition("/")[2]
    return _PUNCTUATION.sub(" ", last if _subject_words(last) else server).replace("’", "'")


def _subject_words(text: str) -> list[str]:
    """Return the words from the first to the last that says something: "Local Falcon" of "Local Falcon Server".

    Names begin with any word but those of the protocol.
    """
    words = _NAME_WORD.findall(_PUNCTUATION.sub(" ", text))
    is_subject = [word.casefold() not in GENERIC | WEAK for word in words]
    if not any(is_subject):
        return []
    end = len(words) - is_subject[::-1].index(True)
    start = next(place for place, word in enumerate(words) if word.casefold() not in _PROTOCOL)
    return words[start:end]


def words_of_server(server: str) -> list[str]:
    """Return the words of a server's name that tell it from others."""
    return _subject_words(_own_name(server))


def _words(text: str, actions: frozenset[str], named: frozenset[int] | None = None) -> Iterator[_Word]:
    """Yield the words of a text. The first word of a sentence is its verb, unless the item's names have it."""
    end, follows = 0, False
    for match in WORD.finditer(text):
        word = match.group()
        stem = terms_of_word(word.casefold())[0]
        is_joined = end > 0 and text[end : match.start()] in (" ", "-")
        is_first = end == 0 and named is not None
        is_term = _is_term(word, actions, is_first=is_first, follows=follows and is_joined)
        if is_first and named is not None and stem not in named:
            is_term = False
        yield _Word(word, stem, is_term, is_joined)
        end, follows = match.end(), is_term


def _collect(
    words: Sequence[_Word], terms: dict[Term, str], after: dict[Term, str], before: dict[Term, str]
) -> None:
    for place, word in enumerate(words):
        if not word.is_term:
            continue
        found: list[tuple[Term, int]] = []
        if word.text.casefold() not in _SECONDS:
            found.append(((word.stem,), place))
            terms.setdefault((word.stem,), word.text)
        earlier = words[place - 1] if place and word.is_joined else None
        if earlier is not None and _is_pair(earlier, word):
            found.append(((earlier.stem, word.stem), place - 1))
            terms.setdefault((earlier.stem, word.stem), f"{earlier.text} {word.text}")
        for term, start in found:
            if place + 1 < len(words) and words[place + 1].is_joined and _may_follow(words[place + 1]):
                after.setdefault(term, words[place + 1].text)
            if start and words[start].is_joined and words[start - 1].is_term:
                before.setdefault(term, words[start - 1].text)


def _is_pair(first: _Word, second: _Word) -> bool:
    weak = {first.text.casefold(), second.text.casefold()} & WEAK
    return first.is_term and first.stem != second.stem and not weak and second.text.casefold() not in _ACTIONS_ONLY


def _may_follow(word: _Word) -> bool:
    lowered = word.text.casefold()
    if lowered in STOP_WORDS or lowered in _EMPTY_FOLLOWERS or not word.text.isalpha():
        return False
    return word.is_term or lowered in GENERIC or lowered in _SECONDS


def _identified(item: Item) -> dict[Term, str]:
    names = {word for word in _NAME_PARTS.split(f"{item.server} {item.name}".casefold()) if len(word) > 5}
    found: dict[Term, str] = {}
    for first, second in pairwise(WORD.findall(item.description[:MAX_SENTENCE])):
        for spelling in (second, second.removesuffix("s")):
            if f"{first}{spelling}".casefold() in names and min(len(first), len(second)) > 1:
                term = (terms_of_word(first.casefold())[0], terms_of_word(second.casefold())[0])
                found.setdefault(term, f"{first} {second}")
    return found


def _is_term(word: str, actions: frozenset[str], *, is_first: bool, follows: bool) -> bool:
    """Tell what a text is about from its other words."""
    lowered = word.casefold()
    if (
        len(word) < (3 if word.islower() else 2)
        or lowered in STOP_WORDS
        or lowered in GENERIC
        or _ADJECTIVES.search(lowered)
    ):
        return False
    if lowered in VERBS and lowered not in actions:
        return True
    if terms_of_word(lowered)[0] not in verb_stems():
        return True
    return (lowered in _NOUNS and not is_first) or (lowered in _SECONDS and follows)


@cache
def verb_stems() -> frozenset[int]:
    return frozenset(terms_of_word(verb)[0] for verb in VERBS)


@dataclass(frozen=True)
class TermShares:
    """In how many of all sampled items each term is, and how many items each server has."""

    counts: Counter[Term]
    items: int
    servers: Counter[str]

    def share(self, term: Term) -> float:
        return self.counts[term] / self.items if self.items else 0.0


def term_shares(samples: Sequence[Sampled]) -> TermShares:
    counts: Counter[Term] = Counter()
    for sample in samples:
        counts.update(sample.terms.keys())
    return TermShares(counts, len(samples), Counter(sample.server for sample in samples))
