"""Vectors of what items are about.

Vectors of tools are near when their verbs are the same: `delete_note` is as near to `delete_event` as to
`read_note`.
A skill is a subject, so the verbs are projected out, and each item moves towards the mean of its server.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from toolscript.core.items import Item
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.terms import terms_of_word, without_stop_words, words_of
from toolscript.tools.skills.clustering import unit_rows
from toolscript.tools.skills.sentences import boilerplate_of, frame_of, without_boilerplate

# How much an item moves towards the mean of its server. The mean of a server with one subject is long, that of a
# server with many is short, and counts for less by itself.
SERVER_SHARE = 0.3
# Words count for this much beside a dense vector of length 1. They are hashed to few dimensions with signs, so
# that collisions cancel out.
WORD_SHARE = 0.3
WORD_DIMENSIONS = 512
NAME_WEIGHT = 2.0
MAX_TEXT = 600
MAX_VERBS = 12
# A verb of fewer items says nothing about verbs.
MIN_ITEMS_OF_VERB, MIN_SERVERS_OF_VERB = 5, 3


@cache
def words_in(table: str) -> frozenset[str]:
    """Return a list of `words.toml`: verbs of tools, nouns that share their stem with one, words of no subject."""
    text = (files("toolscript.tools.skills") / "words.toml").read_text("utf-8")
    return frozenset(str(tomllib.loads(text)[table]).split())


VERBS = words_in("verbs")


@dataclass(frozen=True)
class SubjectSpace:
    """The transformation, fitted to a sample of the items."""

    mean: Vector
    verbs: Matrix
    idf: Mapping[int, float]
    servers: Mapping[str, Vector]
    actions: frozenset[str]
    boilerplate: Mapping[str, Vector]

    def vectors_of(
        self, items: Sequence[Item], vectors: Matrix, terms: Sequence[Mapping[int, float]] | None = None
    ) -> Matrix:
        """Return unit vectors of the items' subjects. A server that the sample does not have moves no item."""
        rows = self.own(items, vectors, terms)
        for place, item in enumerate(items):
            if item.server in self.servers:
                rows[place] += SERVER_SHARE * self.servers[item.server]
        return unit_rows(rows)

    def cleaned(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items without descriptions that say nothing about them."""
        return without_boilerplate(items, self.boilerplate) if self.boilerplate else items

    def terms_of(self, items: Sequence[Item]) -> list[dict[int, float]]:
        return [subject_terms(item, self.actions) for item in self.cleaned(items)]

    def own(
        self, items: Sequence[Item], vectors: Matrix, terms: Sequence[Mapping[int, float]] | None = None
    ) -> Matrix:
        """Return dense vectors without verbs, beside the items' words."""
        dense = vectors - self.mean
        for place, item in enumerate(items):
            # What the sentence adds to the vector of any item says nothing about this one.
            if self.boilerplate and (frame := frame_of(item)) in self.boilerplate:
                dense[place] -= self.boilerplate[frame]
        if len(self.verbs):
            dense = dense - (dense @ self.verbs.T) @ self.verbs
        words = np.zeros((len(items), WORD_DIMENSIONS), dtype=np.float32)
        for place, of_item in enumerate(self.terms_of(items) if terms is None else terms):
            for term, weight in of_item.items():
                words[place, term % WORD_DIMENSIONS] += _sign(term) * weight * self.idf.get(term, 0.0)
        return np.concatenate([unit_rows(dense), WORD_SHARE * unit_rows(words)], axis=1)


def subject_space(items: Sequence[Item], vectors: Matrix) -> SubjectSpace:
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    actions = actions_of(items)
    verbs = _verb_directions(items, vectors - mean, actions)
    boilerplate = _boilerplate_directions(items, vectors - mean)
    idf = _idf(without_boilerplate(items, boilerplate), actions)
    space = SubjectSpace(mean, verbs, idf, {}, actions, boilerplate)
    rows = space.own(items, vectors)
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.server, []).append(place)
    servers = {
        server: rows[of_server].mean(axis=0)
        for server, of_server in places.items()
        if server and len(of_server) > 1
    }
    return replace(space, servers=servers)


def actions_of(items: Sequence[Item]) -> frozenset[str]:
    """Return the verbs of this catalog. A word of one or two servers, such as "compute", is their subject."""
    servers: dict[str, set[str]] = {}
    for item in items:
        for word in words_of(item.name):
            if word in VERBS:
                servers.setdefault(word, set()).add(item.server)
    if len({item.server for item in items}) < MIN_SERVERS_OF_VERB:
        return VERBS
    rare = {word for word, of_word in servers.items() if len(of_word) < MIN_SERVERS_OF_VERB}
    return VERBS - rare


def subject_terms(item: Item, actions: frozenset[str] = VERBS) -> dict[int, float]:
    """Return the stems of the words that say what an item is about, with weights."""
    weights: dict[int, float] = {}
    fields = ((item.name, NAME_WEIGHT), (item.server, 1.0), (item.description[:MAX_TEXT], 1.0))
    for text, weight in fields:
        for word in without_stop_words(words_of(text)):
            if word not in actions and len(word) > 1:
                term = terms_of_word(word)[0]
                weights[term] = max(weight, weights.get(term, 0.0))
    return weights


def _idf(items: Sequence[Item], actions: frozenset[str]) -> dict[int, float]:
    """Return the IDF of the terms of at least two items: a word of one item joins it to no other."""
    counts = Counter(term for item in items for term in subject_terms(item, actions))
    return {term: math.log(len(items) / count) for term, count in counts.items() if count > 1}


def _boilerplate_directions(items: Sequence[Item], centred: Matrix) -> dict[str, Vector]:
    """Return the mean of the items that share a sentence which says nothing, for each such sentence."""
    frames = [frame_of(item) for item in items]
    shared = boilerplate_of(items)
    return {
        frame: centred[[place for place, one in enumerate(frames) if one == frame]].mean(axis=0)
        for frame in sorted(shared)
    }


def _sign(term: int) -> float:
    return 1.0 if (term // WORD_DIMENSIONS) % 2 else -1.0


def _verb_directions(items: Sequence[Item], centred: Matrix, actions: frozenset[str]) -> Matrix:
    """Return an orthonormal basis of the directions in which the most frequent verbs move an item."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        for word in dict.fromkeys(words_of(item.name)):
            if word in actions:
                places.setdefault(word, []).append(place)
    frequent = sorted(places, key=lambda word: (-len(places[word]), word))[:MAX_VERBS]
    means = [centred[places[word]].mean(axis=0) for word in frequent if len(places[word]) >= MIN_ITEMS_OF_VERB]
    if not means:
        return np.zeros((0, centred.shape[1]), dtype=np.float32)
    _, lengths, basis = np.linalg.svd(np.stack(means).astype(np.float64), full_matrices=False)
    return np.asarray(basis[lengths > lengths[0] / 10], dtype=np.float32)
