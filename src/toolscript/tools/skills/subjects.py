"""Vectors of what items are about.

Vectors of tools are near when the verbs are the same: `delete_note` is as near to `delete_event` as to `read_note`.
A skill is a subject, so the verbs are projected out, and each item moves towards the mean of its server.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolscript.core.items import Item
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.terms import terms_of_word, without_stop_words, words_of
from toolscript.tools.skills.clustering import unit_rows

# How much an item moves towards the mean of its server. The mean of a server with one subject is long, that of a
# server with many is short, and counts for less by itself.
SERVER_SHARE = 0.8
# Words count for this much beside a dense vector of length 1. They are hashed to few dimensions with signs, so that
# collisions cancel out.
WORD_SHARE = 0.6
WORD_DIMENSIONS = 512
NAME_WEIGHT = 2.0
MAX_TEXT = 600
MAX_VERBS = 12
# A verb of fewer items says nothing about verbs.
MIN_ITEMS_OF_VERB = 5

VERBS = frozenset(
    """
    access activate add adjust analyse analyze append apply approve archive ask assess assign attach authenticate authorize
    backup begin book browse build bulk buy calculate call cancel capture change check checkout choose clean clear click
    clone close collect compare complete compose compute configure confirm connect control convert copy count create
    deactivate debug decode define delete deploy describe detect determine diff disable disconnect discover display
    download draft draw edit enable encode end enhance enroll ensure estimate evaluate examine execute exit expand
    explain explore export extract fetch fill filter find fix follow forecast format gather generate get give handle
    help identify import improve include index initialize input insert inspect install interact invoke issue join
    kill launch leave link list load locate lock log login logout look lookup make manage mark measure merge modify
    monitor move navigate notify obtain open optimize order organize parse patch pause perform pin ping place play
    poll post predict prepare preview print process provide provision publish pull push put query read rebuild receive
    recommend record recover refresh register reject release reload remove rename render reopen reorder replace reply
    report request reset resize resolve restart restore resume retrieve retry return reverse revert review revoke run
    save scan schedule scrape screenshot search see select send set share show simulate sort split start stop store
    stream submit subscribe suggest summarize support switch sync take tell terminate test toggle track transfer
    transform translate trigger try unassign uninstall unlink unlock unpin unsubscribe update upgrade upload upsert use
    validate verify view visit wait watch whoami write
    """.split()
)


@dataclass(frozen=True)
class SubjectSpace:
    """The transformation, fitted to a sample of the items."""

    mean: Vector
    verbs: Matrix
    idf: Mapping[int, float]
    servers: Mapping[str, Vector]

    def vectors_of(self, items: Sequence[Item], vectors: Matrix) -> Matrix:
        """Return unit vectors of the items' subjects. A server that the sample does not have moves no item."""
        rows = self._own(items, vectors)
        for place, item in enumerate(items):
            if item.server in self.servers:
                rows[place] += SERVER_SHARE * self.servers[item.server]
        return unit_rows(rows)

    def _own(self, items: Sequence[Item], vectors: Matrix) -> Matrix:
        """Return dense vectors without verbs, beside the items' words."""
        dense = vectors - self.mean
        if len(self.verbs):
            dense = dense - (dense @ self.verbs.T) @ self.verbs
        words = np.zeros((len(items), WORD_DIMENSIONS), dtype=np.float32)
        for place, item in enumerate(items):
            for term, weight in subject_terms(item).items():
                words[place, term % WORD_DIMENSIONS] += _sign(term) * weight * self.idf.get(term, 0.0)
        return np.concatenate([unit_rows(dense), WORD_SHARE * unit_rows(words)], axis=1)


def subject_space(items: Sequence[Item], vectors: Matrix) -> SubjectSpace:
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    verbs = _verb_directions(items, vectors - mean)
    space = SubjectSpace(mean, verbs, _idf(items), {})
    rows = space._own(items, vectors)
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.server, []).append(place)
    servers = {
        server: rows[of_server].mean(axis=0)
        for server, of_server in places.items()
        if server and len(of_server) > 1
    }
    return replace(space, servers=servers)


def subject_terms(item: Item) -> dict[int, float]:
    """Return the stems of the words that say what an item is about, with weights."""
    weights: dict[int, float] = {}
    fields = ((item.name, NAME_WEIGHT), (item.server, 1.0), (item.description[:MAX_TEXT], 1.0))
    for text, weight in fields:
        for word in without_stop_words(words_of(text)):
            if word not in VERBS and len(word) > 1:
                term = terms_of_word(word)[0]
                weights[term] = max(weight, weights.get(term, 0.0))
    return weights


def _idf(items: Sequence[Item]) -> dict[int, float]:
    """Return the IDF of the terms of at least two items: a word of one item joins it to no other."""
    counts = Counter(term for item in items for term in subject_terms(item))
    return {term: math.log(len(items) / count) for term, count in counts.items() if count > 1}


def _sign(term: int) -> float:
    return 1.0 if (term // WORD_DIMENSIONS) % 2 else -1.0


def _verb_directions(items: Sequence[Item], centred: Matrix) -> Matrix:
    """Return an orthonormal basis of the directions in which the most frequent verbs move an item."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        for word in dict.fromkeys(words_of(item.name)):
            if word in VERBS:
                places.setdefault(word, []).append(place)
    frequent = sorted(places, key=lambda word: (-len(places[word]), word))[:MAX_VERBS]
    means = [centred[places[word]].mean(axis=0) for word in frequent if len(places[word]) >= MIN_ITEMS_OF_VERB]
    if not means:
        return np.zeros((0, centred.shape[1]), dtype=np.float32)
    _, lengths, basis = np.linalg.svd(np.stack(means).astype(np.float64), full_matrices=False)
    return np.asarray(basis[lengths > lengths[0] / 10], dtype=np.float32)
