"""Names and descriptions of clusters, from the terms and the central items of their members.

A term is a word or two adjacent words of an item's name, server or description, without verbs and stop words.
A good term is in many members and in few other items; the second and third term cover members that the first ones
do not.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from toolscript.core.items import Item
from toolscript.core.retrieval.terms import STOP_WORDS, split_identifier, terms_of_word
from toolscript.core.taxonomy import Skill, skill_id_of
from toolscript.core.text import readable
from toolscript.tools.classify.steering import SkillNames, described
from toolscript.tools.skills.subjects import VERBS, words_in

MAX_TEXT = 400
MAX_TERMS_IN_NAME = 3
MAX_KEYWORDS = 12
MAX_EXAMPLES = 6
MAX_SENTENCE = 110
MIN_SENTENCE = 30
MAX_SENTENCES = 3
# A sentence says something new with so many words that those before it do not have.
MIN_NEW_WORDS = 2
# Terms that a description names beside those of the name, and the share of texts that must have a term as a word.
MAX_MORE, MIN_WRITTEN = 3, 0.5
# The first term covers this share of the members, or another one follows.
ENOUGH_COVERED = 0.75
MIN_SHARE = 0.06
# A term of this share of all items tells no skill from another.
MAX_CATALOG_SHARE = 0.2
# Two words are a term instead of the single words if this share of the word's members have them.
PAIR_SHARE, PAIR_WEIGHT = 0.55, 1.5
# Words that names join are what people call a thing.
IDENTIFIED_SHARE, IDENTIFIED_WEIGHT = 0.1, 3.0
# Of identifiers, and of words that texts use neither in the plural nor with a capital: likely no nouns.
OTHER_WEIGHT = 0.3
# A plural, or a spelling in small letters, is used if this share of the members do.
PLURAL_SHARE, SMALL_SHARE = 0.08, 0.25
MIN_COVERED_BY_NEXT = 0.12

GENERIC = words_in("generic")
# Plural nouns that share their stem with a verb.
_NOUNS = words_in("nouns")
# Verbs that are nouns after another noun: "file share", "audit log".
_SECONDS = words_in("seconds")
_SEPARATORS = re.compile(r"[-_/]+")
_NAME_PARTS = re.compile(r"[^a-z0-9]+")
_WORD = re.compile(r"[^\W\d_]\w*(?:[-'’]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s|\n")
_CLAUSE_END = re.compile(r" \(|[,;:] (?!and\b|or\b)| (?:by|with|using|including|such as|based on|for use) ")
# Words that no sentence ends with.
_LEAD_ON = STOP_WORDS | {"such", "including", "like", "returning", "returns"}
# A word in small letters, or a name: "PostgreSQL", but neither "serializedData" nor "file-uri".
_PLAIN = re.compile(r"[^\W\d_A-Z]+|[A-Z][^\W_]*")

Term = tuple[int, ...]


@dataclass(frozen=True)
class Sampled:
    """The terms of an item, each with the words it was written with, and the terms of its description.

    `identified` are two words that a name joins: "Key Vault", if the server is called `keyvault`.
    """

    terms: Mapping[Term, str]
    described: frozenset[Term] = frozenset()
    identified: frozenset[Term] = frozenset()


def sampled(item: Item, actions: frozenset[str] = VERBS) -> Sampled:
    """Descriptions come first: they spell a word as people do, and names do not."""
    terms: dict[Term, str] = {}
    described_terms: frozenset[Term] = frozenset()
    texts = (item.description[:MAX_TEXT], _SEPARATORS.sub(" ", item.server), split_identifier(item.name))
    for text in texts:
        previous: tuple[int, str] | None = None
        end = 0
        for match in _WORD.finditer(text):
            word = match.group()
            is_adjacent = text[end : match.start()] in (" ", "-")
            is_first, end = end == 0, match.end()
            follows = previous is not None and is_adjacent
            if not _is_term(word, actions, is_first=is_first, follows=follows):
                previous = None
                continue
            stem = terms_of_word(word.casefold())[0]
            if word.casefold() not in _SECONDS:
                terms.setdefault((stem,), word)
            if previous is not None and is_adjacent and previous[0] != stem:
                terms.setdefault((previous[0], stem), f"{previous[1]} {word}")
            previous = (stem, word)
        described_terms = described_terms or frozenset(terms)
    identified = _identified(item)
    described_terms |= identified.keys()
    return Sampled({**terms, **identified}, described_terms, frozenset(identified))


def _identified(item: Item) -> dict[Term, str]:
    names = {word for word in _NAME_PARTS.split(f"{item.server} {item.name}".casefold()) if len(word) > 5}
    found: dict[Term, str] = {}
    words = _WORD.findall(item.description[:MAX_TEXT])
    for first, second in pairwise(words):
        for spelling in (second, second.removesuffix("s")):
            if f"{first}{spelling}".casefold() in names and len(first) > 1:
                term = (terms_of_word(first.casefold())[0], terms_of_word(second.casefold())[0])
                found.setdefault(term, f"{first} {second}")
    return found


def _is_term(word: str, actions: frozenset[str], *, is_first: bool, follows: bool) -> bool:
    """Tell what a text is about from its other words. The first word of a text is its verb, if it can be one."""
    lowered = word.casefold()
    if len(word) < 2 or lowered in STOP_WORDS or lowered in GENERIC:
        return False
    if lowered in VERBS and lowered not in actions:
        return True
    if terms_of_word(lowered)[0] not in _verb_stems():
        return True
    return (lowered in _NOUNS and not is_first) or (lowered in _SECONDS and follows)


@cache
def _verb_stems() -> frozenset[int]:
    return frozenset(terms_of_word(verb)[0] for verb in VERBS)


@dataclass(frozen=True)
class TermShares:
    """In how many of all sampled items each term is."""

    counts: Counter[Term]
    items: int

    def share(self, term: Term) -> float:
        return self.counts[term] / self.items if self.items else 0.0


def term_shares(samples: Sequence[Sampled]) -> TermShares:
    counts: Counter[Term] = Counter()
    for sample in samples:
        counts.update(sample.terms.keys())
    return TermShares(counts, len(samples))


@dataclass(frozen=True)
class ClusterText:
    """What a proposal is named from: the samples of the members, and the central items, the most central first."""

    samples: Sequence[Sampled]
    central: Sequence[Item]
    shares: TermShares

    @cached_property
    def scores(self) -> dict[Term, float]:
        """Return c-TF-IDF: the share of members with the term, times the log of how rare it is elsewhere."""
        counts = Counter(term for sample in self.samples for term in sample.terms)
        written = Counter(term for sample in self.samples for term in sample.described)
        total, scores = len(self.samples), dict[Term, float]()
        for term, count in counts.items():
            share, everywhere = count / total, max(map(self.shares.share, {term, *((stem,) for stem in term)}))
            if len(term) > 1 and (term in self.identified or everywhere <= MAX_CATALOG_SHARE):
                everywhere = self.shares.share(term)
            if count > 1 and share >= MIN_SHARE and everywhere <= max(MAX_CATALOG_SHARE, 0.5 / max(1, total)):
                rarity = float(np.log((share + 0.01) / (everywhere + 0.01)))
                # A word of identifiers alone, such as "keyvault", is no word for people.
                scores[term] = share * rarity * (0.2 + 0.8 * written[term] / count)
        return {term: score for term, score in scores.items() if score > 0}

    @cached_property
    def identified(self) -> frozenset[Term]:
        """Pairs of words that names of servers or tools join, for a good part of the members."""
        counts = Counter(term for sample in self.samples for term in sample.identified)
        return frozenset(term for term, count in counts.items() if count >= IDENTIFIED_SHARE * len(self.samples))

    def weight(self, term: Term) -> float:
        """Two words say more than one, and the words of a name the most."""
        if term in self.identified:
            return IDENTIFIED_WEIGHT
        if not self.is_word(term) or (len(term) == 1 and not self.is_noun(term)):
            return OTHER_WEIGHT
        return PAIR_WEIGHT if len(term) > 1 else 1.0

    def is_word(self, term: Term) -> bool:
        return all(_PLAIN.fullmatch(word) for word in self.shown(term).split())

    def is_noun(self, term: Term) -> bool:
        """Return whether a word is a noun or a name, as far as texts tell: they have its plural, or a capital."""
        return self.plural(term) != self.shown(term) or not self.shown(term)[:1].islower()

    @cached_property
    def ranked(self) -> list[Term]:
        """Return the terms, best first; a single word gives way to two words that nearly always contain it."""
        scores = self.scores
        counts = Counter(term for sample in self.samples for term in sample.terms)
        absorbed = {
            (stem,)
            for pair in scores
            if len(pair) == 2
            for stem in pair
            if pair in self.identified or counts[pair] >= PAIR_SHARE * counts[(stem,)]
        }
        joined = {
            self.shown(pair).replace(" ", "").casefold() for pair in counts if len(pair) == 2 and counts[pair] > 1
        }
        kept = [term for term in scores if term not in absorbed and self.shown(term).casefold() not in joined]
        strong = {stem for term in kept if len(term) == 1 for stem in term}
        # Of a pair that is seldom, its frequent word says the same.
        kept = [
            term
            for term in kept
            if len(term) == 1 or term in self.identified or not any(stem in strong for stem in term)
        ]
        return sorted(kept, key=lambda term: (-scores[term] * self.weight(term), self.shown(term)))

    def is_plain(self, term: Term) -> bool:
        """Return whether a term is of words that people write: no identifier, and in most texts that have it."""
        have = [sample for sample in self.samples if term in sample.terms]
        written = sum(term in sample.described for sample in have)
        return self.is_word(term) and written >= MIN_WRITTEN * len(have) and (len(term) > 1 or self.is_noun(term))

    @cached_property
    def _spellings(self) -> dict[Term, Counter[str]]:
        spellings: dict[Term, Counter[str]] = {}
        for sample in self.samples:
            for term, spelling in sample.terms.items():
                spellings.setdefault(term, Counter())[spelling] += 1
        return spellings

    def plural(self, term: Term) -> str:
        """Return the spelling of a name: in the plural, if enough members use it."""
        singular = self.shown(term)
        for ending in ("s", "es"):
            count = sum(
                count
                for word, count in self._spellings[term].items()
                if word.casefold() == f"{singular}{ending}".casefold()
            )
            if count >= PLURAL_SHARE * self._spellings[term].total():
                return f"{singular}{ending}"
        return singular

    def shown(self, term: Term) -> str:
        """Return the spelling that most members use; of equally frequent ones the first in order."""
        spellings = self._spellings[term]
        lowered = Counter[str]()
        for spelling, count in spellings.items():
            lowered[spelling.casefold()] += count
        best = min(lowered, key=lambda word: (-lowered[word], word))
        cased = {spelling: count for spelling, count in spellings.items() if spelling.casefold() == best}
        if cased.get(best, 0) >= SMALL_SHARE * sum(cased.values()):
            return best
        return min(cased, key=lambda word: (-cased[word], word))

    @cached_property
    def title_terms(self) -> list[Term]:
        """Choose terms greedily: each next one covers the most members that none covers yet."""
        chosen: list[Term] = []
        missing = list(self.samples)
        candidates = self.ranked[:40]
        while candidates and missing and len(chosen) < MAX_TERMS_IN_NAME:
            rarity = {term: self.scores[term] * len(self.samples) for term in candidates}
            covered = {term: sum(term in sample.terms for sample in missing) for term in candidates}
            everywhere = {term: sum(term in sample.terms for sample in self.samples) for term in candidates}
            gains = {
                term: rarity[term] * covered[term] / everywhere[term] * self.weight(term) for term in candidates
            }
            best = max(candidates, key=lambda term: gains[term])
            if chosen and covered[best] < MIN_COVERED_BY_NEXT * len(self.samples):
                break
            chosen.append(best)
            missing = [sample for sample in missing if best not in sample.terms]
            candidates = [term for term in candidates if not set(term) & set(best)]
            if len(missing) <= (1 - ENOUGH_COVERED) * len(self.samples) and len(chosen) > 1:
                break
        return chosen


def name_of(text: ClusterText, taken: frozenset[str] = frozenset()) -> str:
    """Return a name such as "Issues and pull requests"; that of the most central item if no term stands out.

    A name that is taken gets further terms, until it is not.
    """
    words = [text.plural(term) for term in text.title_terms]
    if not words and text.central:
        words = [readable(split_identifier(text.central[0].name))]
    more = [text.plural(term) for term in text.ranked if not any(set(term) & set(one) for one in text.title_terms)]
    name = _title(_joined(words))
    for count in range(1, len(more) + 1):
        if name.casefold() not in taken:
            break
        name = f"{_title(_joined(words))}: {_joined(more[:count])}"
    return name


def _title(text: str) -> str:
    return readable(text[:1].upper() + text[1:])[:100].strip()


def skill_of(text: ClusterText, taken: frozenset[str] = frozenset(), names: frozenset[str] = frozenset()) -> Skill:
    """Return the proposed skill, with an id and a name that are not taken; `names` are in small letters."""
    name = name_of(text, names) or "Other tools"
    keywords = list(dict.fromkeys(text.shown(term).casefold() for term in text.ranked))[:MAX_KEYWORDS]
    examples = list(dict.fromkeys(readable(item.name)[:80] for item in text.central))[:MAX_EXAMPLES]
    skill_id = free_id(skill_id_of(name) or "skill", taken)
    return Skill(skill_id, name, _description(text), keywords=tuple(keywords), examples=tuple(examples))


def free_id(wanted: str, taken: frozenset[str]) -> str:
    wanted, number = wanted[:60], 2
    skill_id = wanted
    while skill_id in taken:
        skill_id = f"{wanted}_{number}"
        number += 1
    return skill_id


def _description(text: ClusterText) -> str:
    """Say what the members are about, and what some central ones do in their own words, without text that steers.

    That members have a verb and a noun does not say that one has both, so no sentence is made of these.
    """
    named = frozenset(stem for term in text.title_terms for stem in term)
    more = [term for term in text.ranked if not named.intersection(term) and text.is_plain(term)]
    about = _joined([text.plural(term) for term in (*text.title_terms, *more[:MAX_MORE])])
    parts = [f"Tools about {about}."] if about else []
    if sentences := _different(filter(None, map(_first_sentence, text.central))):
        parts.append(f"For example: {'; '.join(sentences)}.")
    return readable(" ".join(parts))


def _different(sentences: Iterable[str]) -> list[str]:
    """Return the first sentences that say something new: to list and to search the same things are one."""
    chosen: list[str] = []
    known: set[int] = set()
    for sentence in sentences:
        words = {terms_of_word(word.casefold())[0] for word in _WORD.findall(sentence)} - _verb_stems()
        if len(words - known) >= MIN_NEW_WORDS:
            chosen.append(sentence)
            known |= words
    return chosen[:MAX_SENTENCES]


def _first_sentence(item: Item) -> str:
    """Return the first sentence of a description: what it does, not how. Empty if the text tries to steer."""
    cleaned, was_steering = described(item, SkillNames())
    if was_steering:
        return ""
    sentence = " ".join(_SENTENCE_END.split(cleaned.description.strip(), 1)[0].split()).rstrip(".。!")
    sentence = _shortened(sentence) if len(sentence) > MAX_SENTENCE else sentence
    while sentence.endswith((",", ";", ":")) or sentence.rpartition(" ")[2].casefold() in _LEAD_ON:
        sentence = sentence.rpartition(" ")[0] if sentence[-1].isalpha() else sentence[:-1]
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def _shortened(sentence: str) -> str:
    """Return the sentence up to the end of a clause; nothing if it has none."""
    ends = [match.start() for match in _CLAUSE_END.finditer(sentence) if match.start() <= MAX_SENTENCE]
    return sentence[: ends[-1]] if ends and ends[-1] >= MIN_SENTENCE else ""


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
