"""Names and descriptions of clusters, from the terms and the central items of their members.

A good term is in many members, in members of many servers, and in few other items. A name is one term, or two, of
which the second covers members that the first does not.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolscript.core.items import Item
from toolscript.core.retrieval.terms import STOP_WORDS, split_identifier, terms_of_word
from toolscript.core.taxonomy import Skill, skill_id_of
from toolscript.core.text import has_invisible, readable
from toolscript.tools.classify.steering import gives_orders
from toolscript.tools.skills.phrases import (
    BROAD,
    WEAK,
    WORD,
    Sampled,
    Term,
    TermShares,
    verb_stems,
    words_of_server,
)
from toolscript.tools.skills.sentences import SENTENCE_END

MAX_TERMS_IN_NAME = 2
MAX_KEYWORDS = 12
MAX_EXAMPLES = 6
MAX_SENTENCE = 110
MIN_SENTENCE = 30
MAX_SENTENCES = 3
# A sentence says something new with so many words that those before it do not have.
MIN_NEW_WORDS = 2
# Terms that a description names beside those of the name, each in this share of the members; and the share of
# texts that must have a term as a word.
MAX_MORE, MIN_SHARE_OF_MORE, MIN_WRITTEN, MIN_WRITTEN_IN_NAME = 3, 0.2, 0.5, 0.2
# Without a term that covers enough, the best of so many frequent ones is taken.
MAX_FREQUENT = 4
# The terms of a name cover this share of the members, or another one follows.
ENOUGH_COVERED = 0.6
COVERED_ALONE, MIN_COVERED_BY_FIRST, MIN_COVERED_BY_NEXT = 0.5, 0.3, 0.2
# Below this share a cluster has no subject, unless this share of its members is of one server.
MIN_COVERED, DOMINANT = 0.5, 0.6
# Below this share another name is looked for, of parts of the cluster.
CLEARLY_COVERED = 0.65
# A broad word, such as "pages", needs another that so many members have; without one it says less.
COVERED_BY_COMPANION, BROAD_WEIGHT = 0.25, 0.6
# A server of which a cluster has less than this share is about more than the cluster.
MIN_OF_SERVER = 0.2
MAX_WORDS_OF_SERVER = 3
MIN_SHARE = 0.06
# A term of this share of all items tells no skill from another.
MAX_CATALOG_SHARE = 0.2
# Two words are a term instead of the single words if this share of the word's members have them.
PAIR_SHARE, PAIR_WEIGHT = 0.55, 1.5
# A word that this share of the texts have before or after a term belongs to it.
AROUND_SHARE = 0.55
# Words that names join are what people call a thing.
IDENTIFIED_SHARE, IDENTIFIED_WEIGHT = 0.1, 3.0
# Of identifiers, and of words that texts use neither in the plural nor with a capital: likely no nouns.
OTHER_WEIGHT, WEAK_WEIGHT = 0.3, 0.2
# A plural, or a spelling in small letters, is used if this share of the members do.
PLURAL_SHARE, SMALL_SHARE = 0.12, 0.25

# Addresses, links, tags and emphasis: no words for a description.
_MARKUP = re.compile(r"://|\]\(|<|\*\*|`")
# What a tool says to a model that chooses among tools says nothing about the tool.
_ADDRESSED = re.compile(
    r"^(?:important|note|agents?|assistants?|models?|you|before|after|when|if|first)\b|\bother tools\b"
    r"|\b(?:use|call|prefer|choose) (?:only )?(?:this|it)\b|\b(?:asking|telling|ask|tell) the user\b"
    r"|\bwithout (?:asking|telling)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r" \(|[,;:] (?!and\b|or\b)| (?:by|with|using|including|such as|based on|for use) ")
_PARTS_OF_NAME = re.compile(r": |, | and ")
# Words that no sentence ends with.
_LEAD_ON = STOP_WORDS | {"such", "including", "like", "returning", "returns"}
# A word in small letters, or a name: "PostgreSQL", but neither "serializedData" nor "file-uri".
_PLAIN = re.compile(r"[^\W\d_A-Z]+|[A-Z][^\W_]*(?:\.[a-z]+)?")


@dataclass(frozen=True)
class ClusterText:
    """What a proposal is named from: the samples of the members, and the central items, the most central first.

    Text that steers has been removed from all of them.
    """

    samples: Sequence[Sampled]
    central: Sequence[Item]
    shares: TermShares

    @cached_property
    def counts(self) -> Counter[Term]:
        return Counter(term for sample in self.samples for term in sample.terms)

    @cached_property
    def scores(self) -> dict[Term, float]:
        """Return c-TF-IDF: the share of members and servers with a term, times the log of its rarity elsewhere."""
        servers = Counter(
            term for _, term in {(sample.server, term) for sample in self.samples for term in sample.terms}
        )
        total, all_servers = len(self.samples), len({sample.server for sample in self.samples})
        scores: dict[Term, float] = {}
        for term, count in self.counts.items():
            share, everywhere = count / total, max(map(self.shares.share, {term, *((stem,) for stem in term)}))
            if len(term) > 1 and (term in self.identified or everywhere <= MAX_CATALOG_SHARE):
                everywhere = self.shares.share(term)
            if count > 1 and share >= MIN_SHARE and everywhere <= max(MAX_CATALOG_SHARE, 0.5 / max(1, total)):
                share = (share + servers[term] / all_servers) / 2
                rarity = float(np.log((share + 0.01) / (everywhere + 0.01)))
                # A word of identifiers alone, such as "keyvault", is no word for people.
                scores[term] = share * rarity * (0.2 + 0.8 * self.written[term] / count)
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
        if self.is_weak(term):
            return WEAK_WEIGHT
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
        scores, counts = self.scores, self.counts
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
        is_noun = len(term) > 1 or (self.is_noun(term) and not self.is_weak(term))
        return is_noun and self.is_written(term, MIN_WRITTEN)

    def is_written(self, term: Term, share: float = MIN_WRITTEN_IN_NAME) -> bool:
        return self.is_word(term) and self.written[term] >= share * self.counts[term]

    def may_follow(self, term: Term) -> bool:
        """Return whether a term is good enough to be the second of a name."""
        return self.is_written(term) and not self.is_weak(term)

    @cached_property
    def written(self) -> Counter[Term]:
        return Counter(term for sample in self.samples for term in sample.described)

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

    def phrase(self, term: Term) -> str:
        """Return the term as people write it, with the words that nearly always stand around it."""
        have = [sample for sample in self.samples if term in sample.described]
        after = _usual([sample.after[term] for sample in have if term in sample.after], len(have))
        before = _usual([sample.before[term] for sample in have if term in sample.before], len(have))
        if before and self.shares.share((terms_of_word(before.casefold())[0],)) > MAX_CATALOG_SHARE:
            before = ""
        return " ".join(filter(None, (before, self.shown(term) if after else self.plural(term), after)))

    @cached_property
    def title_terms(self) -> list[Term]:
        """Choose terms greedily: each next one covers the most members that none covers yet.

        Beside the name of a server, only a term that half of the members have says something about them.
        """
        chosen: list[Term] = []
        missing = list(self.samples)
        candidates = self.ranked[:40]
        while candidates and missing and len(chosen) < MAX_TERMS_IN_NAME:
            covered = {term: sum(term in sample.terms for sample in missing) for term in candidates}
            candidates = self._covering(candidates, covered, is_first=not chosen)
            if not candidates:
                break
            gains = {
                term: self.scores[term] * covered[term] / self.counts[term] * self.weight(term)
                for term in candidates
            }
            best = max(candidates, key=lambda term: gains[term])
            chosen.append(best)
            missing = [sample for sample in missing if best not in sample.terms]
            candidates = [term for term in candidates if not set(term) & set(best)]
            if len(missing) <= (1 - ENOUGH_COVERED) * len(self.samples):
                break
        return [*chosen, *self._companion(chosen)]

    def _companion(self, chosen: Sequence[Term]) -> list[Term]:
        """Return the term that says what a broad word is about: pages of a wiki, or of a book."""
        if len(chosen) != 1 or not self.is_broad(chosen[0]) or self.server_words:
            return []
        least = COVERED_BY_COMPANION * len(self.samples)
        enough = [
            term
            for term in self.ranked
            if self.counts[term] >= least
            and not set(term) & set(chosen[0])
            and self.may_follow(term)
            and self.is_plain(term)
            and not self.is_broad(term)
        ]
        return enough[:1]

    def _covering(self, candidates: Sequence[Term], covered: Mapping[Term, int], *, is_first: bool) -> list[Term]:
        """Return the terms that cover enough: most members alone if there is such a term, else a part of them."""
        total = len(self.samples)
        if not is_first:
            return [
                term
                for term in candidates
                if covered[term] >= MIN_COVERED_BY_NEXT * total and self.may_follow(term) and not self.server_words
            ]
        for least in (COVERED_ALONE,) if self.server_words else (COVERED_ALONE, MIN_COVERED_BY_FIRST):
            enough = [term for term in candidates if covered[term] >= least * total and self.is_written(term)]
            if any(not self.is_weak(term) for term in enough):
                return enough
        return [] if self.server_words else sorted(candidates, key=lambda term: -covered[term])[:MAX_FREQUENT]

    def fits(self, sample: Sampled) -> bool:
        """Return whether a member has a term of the name, or is of the server in it."""
        return any(term in sample.terms for term in self.title_terms) or bool(
            self.server_words and sample.server == self.server
        )

    @cached_property
    def title_stems(self) -> list[Term]:
        """Return the stems that an item has, all of one entry, if the name fits it."""
        server = tuple(terms_of_word(word.casefold())[0] for word in self.server_words)
        return [*self.title_terms, server] if server else self.title_terms

    @cached_property
    def coverage(self) -> float:
        """Return the share of members that the name fits."""
        return sum(map(self.fits, self.samples)) / max(1, len(self.samples))

    @property
    def is_named(self) -> bool:
        """Return whether the members have a subject: terms that say something cover enough, or one server does."""
        if self.server_words:
            return True
        return self.coverage >= MIN_COVERED and not all(map(self.is_weak, self.title_terms))

    @property
    def clarity(self) -> float:
        """Return the share of members that the name fits; less if it is but a broad word, and 0 without a name."""
        if not self.is_named:
            return 0.0
        is_broad = not self.server_words and all(map(self.is_broad, self.title_terms))
        return self.coverage * (BROAD_WEIGHT if is_broad else 1.0)

    def is_broad(self, term: Term) -> bool:
        return len(term) == 1 and bool({self.shown(term).casefold(), self.plural(term).casefold()} & BROAD)

    def is_weak(self, term: Term) -> bool:
        return len(term) == 1 and self.shown(term).casefold() in WEAK

    @cached_property
    def server(self) -> str:
        """Return the server that most members are of; an empty string without one."""
        servers = Counter(sample.server for sample in self.samples)
        server, count = min(servers.items(), key=lambda entry: (-entry[1], entry[0]), default=("", 0))
        least = max(DOMINANT * len(self.samples), MIN_OF_SERVER * self.shares.servers[server])
        return server if count >= least else ""

    @cached_property
    def server_words(self) -> list[str]:
        """Return the name of the server that most members are of, as descriptions spell it; none without one."""
        words = words_of_server(self.server)[:MAX_WORDS_OF_SERVER]
        if is_addressed(" ".join(words)):
            return []
        while words and words[-1].casefold() in STOP_WORDS:
            words = words[:-1]
        for term in self.identified:
            if self.shown(term).replace(" ", "").casefold() == "".join(words).casefold():
                return self.shown(term).split()
        shown = {self.shown(term).casefold(): self.shown(term) for term in self.written if len(term) == 1}
        return [shown.get(word, word) for word in words]


def _usual(words: Sequence[str], total: int) -> str:
    """Return the word that most texts have at this place, or an empty string."""
    if not words:
        return ""
    word, count = min(Counter(words).items(), key=lambda entry: (-entry[1], entry[0]))
    return word if count >= AROUND_SHARE * total and count > 1 else ""


def name_of(text: ClusterText, taken: frozenset[str] = frozenset()) -> str:
    """Return a name such as "Issues and pull requests"; that of the most central item if no term stands out.

    A name that is taken gets further terms, until it is not.
    """
    words = list({phrase.casefold(): phrase for phrase in map(text.phrase, text.title_terms[::-1])}.values())[::-1]
    if text.server_words and _is_part(words, text.server_words):
        words = [" ".join(text.server_words)]
    elif text.server_words and not _has_any(_joined(words), text.server_words):
        words[:1] = [f"{' '.join(text.server_words)}{': ' + words[0] if words else ''}"]
    if not words and text.central:
        words = [readable(split_identifier(text.central[0].name))]
    rest = [term for term in text.ranked if not any(set(term) & set(one) for one in text.title_terms)]
    rest.sort(key=lambda term: (not text.is_plain(term), -text.counts[term]))
    more = list(dict.fromkeys(map(text.phrase, rest)))
    name = _title(_joined(words))
    # If all terms are taken, the tool in the middle tells one group from the other.
    more += [readable(split_identifier(item.name)) for item in text.central[:1]]
    for count in range(1, len(more) + 1):
        if name.casefold() not in taken:
            break
        name = _title(f"{_joined(words)}: {more[count - 1]}")
    return name


def _is_part(words: Sequence[str], server: Sequence[str]) -> bool:
    """Return whether a name is a part of a server's: "Falcon" of "Peregrine Falcon"."""
    own = {terms_of_word(word.casefold())[0] for word in WORD.findall(" ".join(words))}
    return 0 < len(own) < len(server) and own < {terms_of_word(word.casefold())[0] for word in server}


def stems_of_name(name: str) -> list[Term]:
    """Return the stems of the parts of a name: of "Key Vault and secrets" those of two words, and of one."""
    parts = (WORD.findall(part) for part in _PARTS_OF_NAME.split(name))
    return [tuple(terms_of_word(word.casefold())[0] for word in words) for words in parts if words]


def _has_any(name: str, words: Sequence[str]) -> bool:
    """Return whether a name has one of the words, or these have a word of it: "PostgreSQL" has "postgres"."""
    joined, server = name.replace(" ", "").casefold(), "".join(words).casefold()
    if server in joined or any(len(word) > 2 and word.casefold() in joined for word in words):
        return True
    return any(len(word) > 3 and word.casefold() in server for word in WORD.findall(name))


def _title(text: str) -> str:
    return readable(text[:1].upper() + text[1:])[:100].strip()


def skill_of(text: ClusterText, taken: frozenset[str] = frozenset(), names: frozenset[str] = frozenset()) -> Skill:
    """Return the proposed skill, with an id and a name that are not taken; `names` are in small letters."""
    name = name_of(text, names) or "Other tools"
    keywords = list(dict.fromkeys(text.shown(term).casefold() for term in text.ranked))[:MAX_KEYWORDS]
    named = [readable(item.name)[:80] for item in text.central if item.name and not has_invisible(item.name)]
    examples = list(dict.fromkeys(named))[:MAX_EXAMPLES]
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

    That members have a verb and a noun does not say that one has both, so no sentence is made of these. What is
    said about the tools of a server, its own tools have, and not the others that are with them.
    """
    named = frozenset(stem for term in text.title_terms for stem in term)
    own = [sample for sample in text.samples if sample.server == text.server or not text.server_words]
    counts = Counter(term for sample in own for term in sample.terms)
    more = [term for term in text.ranked if not named.intersection(term) and text.is_plain(term)]
    terms = [term for term in (*text.title_terms, *more) if counts[term] >= MIN_SHARE_OF_MORE * len(own)]
    of_server = " ".join(text.server_words)
    phrases = dict.fromkeys(map(text.phrase, terms[: len(text.title_terms) + MAX_MORE]))
    about = _joined([phrase for phrase in phrases if phrase.casefold() not in of_server.casefold()])
    parts = [f"Tools{f' of {of_server}' if of_server else ''}{f' about {about}' if about else ''}."]
    if sentences := _examples(text):
        parts.append(f"For example: {'; '.join(sentences)}.")
    return readable(" ".join(parts)) if about or of_server or sentences else ""


def _examples(text: ClusterText) -> list[str]:
    """Return sentences of central items: of those that the name fits first, and of different servers first."""
    known = frozenset(stem for term in text.ranked for stem in term)
    named = frozenset(stem for term in text.title_terms for stem in term)
    seen: Counter[str] = Counter()
    found: list[tuple[bool, int, int, str]] = []
    for place, item in enumerate(text.central):
        if sentence := _first_sentence(item):
            stems = {terms_of_word(word.casefold())[0] for word in WORD.findall(sentence)}
            is_of_server = bool(text.server_words) and item.server == text.server
            is_named = is_of_server or bool(stems & named)
            found.append((not is_named, 0 if is_of_server else seen[item.server], place, sentence))
            seen[item.server] += 1
    return _different((sentence for *_, sentence in sorted(found)), known)


def _different(sentences: Iterable[str], terms: frozenset[int]) -> list[str]:
    """Return the first sentences that say something new: to list and to search the same things are one.

    One without a term of the cluster, such as "no description", says nothing about it.
    """
    chosen: list[str] = []
    known: set[int] = set()
    for sentence in sentences:
        words = {terms_of_word(word.casefold())[0] for word in WORD.findall(sentence)} - verb_stems()
        if (words & terms or not terms) and len(words - known) >= MIN_NEW_WORDS:
            chosen.append(sentence)
            known |= words
    return chosen[:MAX_SENTENCES]


def _first_sentence(item: Item) -> str:
    """Return the first sentence of a description: what it does, not how. Empty if it has more than words."""
    sentence = " ".join(SENTENCE_END.split(item.description.strip(), 1)[0].split()).rstrip(".。!")
    if has_invisible(sentence) or _MARKUP.search(sentence) or is_addressed(sentence):
        return ""
    sentence = _shortened(sentence) if len(sentence) > MAX_SENTENCE else sentence
    while sentence.endswith((",", ";", ":")) or sentence.rpartition(" ")[2].casefold() in _LEAD_ON:
        sentence = sentence.rpartition(" ")[0] if sentence[-1].isalpha() else sentence[:-1]
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def is_addressed(text: str) -> bool:
    """Return whether a text speaks to a model or a person instead of about a tool."""
    return bool(_ADDRESSED.search(text)) or gives_orders(text)


def _shortened(sentence: str) -> str:
    """Return the sentence up to the end of a clause; nothing if it has none."""
    ends = [match.start() for match in _CLAUSE_END.finditer(sentence) if match.start() <= MAX_SENTENCE]
    return sentence[: ends[-1]] if ends and ends[-1] >= MIN_SENTENCE else ""


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
