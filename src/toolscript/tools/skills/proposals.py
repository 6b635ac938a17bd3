"""Proposes changes of the taxonomy from the catalog: new skills, splits, merges and retirements.

What no skill fits well is clustered into new skills, and what a skill holds too much of into parts of it. The same
catalog gives the same proposals, in whatever order its items are read. Proposals of the queue keep their members
and names: items that came since join them, and only what fits none of them is clustered.

The catalog is read twice, a page at a time; memory is bounded by the sample, whatever the size of the catalog, but
for the members of earlier proposals, which are all in memory.
"""

import hashlib
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from toolscript.core.items import MIN_CONFIDENCE, Item
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.taxonomy import ProposalKind, Skill
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.classify.steering import described
from toolscript.tools.model.proposals import (
    WEAK_CONFIDENCE,
    EarlierProposal,
    Move,
    NearExisting,
    Observed,
    Proposal,
    ProposalEvidence,
    ProposalLimits,
    RoutingGain,
    SkillSizes,
    own_key,
)
from toolscript.tools.skills.clustering import (
    ClusterLimits,
    Labels,
    Nearest,
    centroids_of,
    cluster,
    nearest,
    unit_rows,
)
from toolscript.tools.skills.grouping import MAX_FARTHER, Grouping, GroupLimits
from toolscript.tools.skills.naming import ClusterText, skill_of, stems_of_name
from toolscript.tools.skills.phrases import Sampled, Term, TermShares, sampled, term_shares
from toolscript.tools.skills.subjects import SubjectSpace, subject_space

NEW = ""
# No earlier proposal says whether an item has a second cluster.
OPEN = -2
# Clusters aimed at: this many times the square root of the items.
CLUSTERS_PER_ROOT = 2.6
# A cluster has at least this root of the items: 3 of 300, 8 of 40,000.
SMALLEST_ROOT = 0.2
# Clusters stay below the largest share: items that come later, or that were not sampled, must fit in.
HEADROOM = 0.85
MAX_PARTS = 12
# Of a description, names and descriptions of skills need the first sentence.
MAX_READ = 500
# Central items shown as evidence, and those read for examples.
CENTRAL, CENTRAL_READ = 8, 24
NEAREST_SHOWN = 3
# A second cluster that is almost as near gets the item as well.
CLOSE = 0.08
# The share of the items that no name fits which are clustered again, among themselves.
MAY_WAIT = 0.04
# An item joins an earlier proposal if it is as near as this percentile of its members.
JOINS_AT_PERCENTILE = 10
ROUTED_SAMPLE, ROUTED_SKILLS = 500, 3
MAX_CONFIDENCE, SECOND_LOSS = 0.95, 0.1
LEAST_CONFIDENCE, PER_COSINE = 0.55, 0.4

Pages = Callable[[], AsyncIterator[Sequence[Observed]]]


@dataclass(frozen=True)
class ProposalInput:
    """`pages` starts the catalog from its first item each time it is called."""

    pages: Pages
    sizes: SkillSizes
    skills: Sequence[Skill]
    earlier: Sequence[EarlierProposal] = ()
    limits: ProposalLimits = field(default_factory=ProposalLimits)


async def propose(request: ProposalInput, on_progress: OnProgress = silent) -> list[Proposal]:
    """Return proposals: new skills, then splits, merges and retirements, each in a stable order."""
    survey = await _survey(request, on_progress)
    if survey is None:
        return []
    every_group = {name: _grouped(survey, name, request) for name in sorted(survey.groups)}
    groups = {name: group for name, group in every_group.items() if group.first}
    await _place_the_rest(request, survey, groups, on_progress)
    names = frozenset(skill.name.casefold() for skill in request.skills)
    taken = frozenset(skill.id for skill in request.skills) | {
        skill.id for earlier in request.earlier for skill in earlier.creates
    }
    proposals: list[Proposal] = []
    for group in groups.values():
        made = _proposals_of(group, survey, request, taken, names)
        taken |= {skill.id for proposal in made for skill in proposal.creates}
        names |= {skill.name.casefold() for proposal in made for skill in proposal.creates}
        proposals += made
    rejected = {key for earlier in request.earlier if earlier.is_rejected for key in _keys_of(earlier)}
    proposals += [*_merges(survey, request), *_retirements(request)]
    return [proposal for proposal in proposals if proposal.key not in rejected]


def _keys_of(earlier: EarlierProposal) -> set[str]:
    """Return the keys that the same proposal may have: a person may have given its new skill another id."""
    is_new = earlier.kind is ProposalKind.NEW
    return {own_key(earlier.key)} | {_key_of_new(skill) for skill in earlier.creates if is_new}


@dataclass
class _SampleOf:
    """A sample of bounded size: the items with the smallest hashes, so that it does not depend on their order."""

    size: int
    heap: list[tuple[int, int, Observed]] = field(default_factory=list)
    count: int = 0

    def add(self, observed: Observed) -> None:
        self.count += 1
        place = (-_hash(observed.item), observed.id)
        if len(self.heap) == self.size and place < self.heap[0][:2]:
            return
        # A copy: a row of a page's matrix would keep all of it in memory.
        entry = (*place, replace(observed, vector=observed.vector.copy()))
        if len(self.heap) < self.size:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heapreplace(self.heap, entry)

    def observed(self) -> list[Observed]:
        """Return the sample in an order that follows from the items alone."""
        return [entry[2] for entry in sorted(self.heap, key=lambda entry: (-entry[0], entry[2].item.key))]


def _hash(item: Item) -> int:
    text = "\0".join((item.server, item.name, item.key, item.description))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


@dataclass(frozen=True)
class _Sample:
    """Sampled items, their subjects and their terms. `cleaned` are the items without text that steers."""

    ids: NDArray[np.int64]
    items: Sequence[Item]
    cleaned: Sequence[Item]
    vectors: Matrix
    subjects: Matrix
    terms: Sequence[Sampled]


@dataclass(frozen=True)
class _Survey:
    """The result of the first pass. `movable` are the skills with items that no person decided about."""

    space: SubjectSpace
    shares: TermShares
    catalog: _Sample
    groups: Mapping[str, _Sample]
    counts: Mapping[str, int]
    centroids: Mapping[str, Vector]
    movable: frozenset[str]


async def _survey(request: ProposalInput, on_progress: OnProgress) -> _Survey | None:
    limits = request.limits
    overfull = _overfull(request)
    catalog = _SampleOf(limits.sample // 2)
    samples = {name: _SampleOf(limits.sample) for name in (NEW, *overfull)}
    sums: dict[str, NDArray[np.float64]] = {}
    movable: set[str] = set()
    seen = 0
    async for page in request.pages():
        for observed in page:
            catalog.add(observed)
            if (group := _group_of(observed, overfull, limits)) is not None:
                samples[group].add(observed)
            for assignment in observed.assignments:
                weighted = observed.vector.astype(np.float64) * assignment.weight
                sums[assignment.skill_id] = sums.get(assignment.skill_id, 0.0) + weighted
                if not observed.is_by_hand:
                    movable.add(assignment.skill_id)
        seen += len(page)
        on_progress(Progress("survey", seen, request.sizes.catalog))
    whole = catalog.observed()
    if not whole:
        return None
    dimensions = len(whole[0].vector)
    space = subject_space([observed.item for observed in whole], _stacked(whole, dimensions))
    known = _sample(whole, space, dimensions)
    groups = {
        name: _sample(sample.observed(), space, dimensions) for name, sample in samples.items() if sample.count
    }
    counts = {name: sample.count for name, sample in samples.items()}
    centroids = {skill_id: unit_rows(total[None])[0] for skill_id, total in sums.items()}
    return _Survey(space, term_shares(known.terms), known, groups, counts, centroids, frozenset(movable))


def _overfull(request: ProposalInput) -> tuple[str, ...]:
    limits = request.limits
    largest = max(limits.max_share * request.sizes.catalog, 2 * limits.min_members)
    active = {skill.id for skill in request.skills if skill.is_active}
    return tuple(sorted(id_ for id_, size in request.sizes.members.items() if size > largest and id_ in active))


def _group_of(observed: Observed, overfull: Sequence[str], limits: ProposalLimits) -> str | None:
    """Return the overfull skill that an item is in, NEW if no skill fits it well, or None. A person's decision
    about an item is final."""
    if observed.is_by_hand:
        return None
    for assignment in observed.assignments:
        if assignment.skill_id in overfull:
            return assignment.skill_id
    best = max((assignment.confidence for assignment in observed.assignments), default=0.0)
    return NEW if best < limits.weak_confidence else None


def _stacked(observed: Sequence[Observed], dimensions: int) -> Matrix:
    rows = np.array([one.vector for one in observed], dtype=np.float32)
    return rows.reshape(len(observed), dimensions)


def _sample(observed: Sequence[Observed], space: SubjectSpace, dimensions: int) -> _Sample:
    items = [one.item for one in observed]
    vectors = _stacked(observed, dimensions)
    ids = np.array([one.id for one in observed], dtype=np.int64)
    texts = list(map(cleaned, space.cleaned(items)))
    terms = [sampled(item, space.actions) for item in texts]
    return _Sample(ids, items, texts, vectors, space.vectors_of(items, vectors), terms)


def cleaned(item: Item) -> Item:
    """Return the start of an item's text; of an item that tries to steer, its cleaned name alone."""
    short = replace(item, description=item.description[:MAX_READ], server_description="", input_schema=None)
    safe, was_steering = described(short)
    return replace(safe, description="") if was_steering else safe


@dataclass
class _Group:
    """The clusters of a group: the earlier ones first, in their order, then the new ones.

    `first`, `second` and `score` are appended to by the second pass.
    """

    name: str
    sample: _Sample
    labels: Labels
    centroids: Matrix
    titles: Sequence[Sequence[Term]]
    kept: Sequence[tuple[EarlierProposal, Skill]]
    is_complete: bool
    ids: list[NDArray[np.int64]] = field(default_factory=list)
    first: list[Labels] = field(default_factory=list)
    second: list[Labels] = field(default_factory=list)
    scores: list[Vector] = field(default_factory=list)

    @cached_property
    def dense_centroids(self) -> Matrix:
        """Return the centroids as search has them: of the vectors themselves, from the sample."""
        return centroids_of(self.sample.vectors, self.labels, len(self.centroids))

    def place_sample(self, earlier: "_Earlier") -> None:
        """Place the sampled items in their clusters. What an earlier proposal says of an item stays as it is.

        Too few items for a cluster wait for more: they have the label -1, and are placed nowhere.
        """
        rows = np.flatnonzero(self.labels >= 0)
        self.place(self.sample.ids[rows], self.sample.subjects[rows], self.labels[rows])
        if len(rows):
            seconds, scores = earlier.seconds[rows], earlier.scores[rows]
            self.second[-1] = np.where(seconds == OPEN, self.second[-1], seconds)
            self.scores[-1] = np.where(np.isnan(scores), self.scores[-1], scores)

    @cached_property
    def floors(self) -> Vector:
        """Return the cosine that a second cluster needs: that of nearly all of its own members."""
        scores = (self.sample.subjects * self.centroids[self.labels]).sum(axis=1)
        of_cluster = [scores[self.labels == place] for place in range(len(self.centroids))]
        return np.array(
            [np.percentile(own, JOINS_AT_PERCENTILE) if len(own) else 2.0 for own in of_cluster], dtype=np.float32
        )

    def place_rest(self, ids: NDArray[np.int64], subjects: Matrix, terms: Sequence[Mapping[int, float]]) -> None:
        """Place items that were not sampled: in the nearest cluster, or in the next if only its name fits."""
        found = nearest(subjects, self.centroids)
        is_near = (found.second >= 0) & (found.second_score >= found.first_score - MAX_FARTHER)
        labels = found.first.copy()
        for row in np.flatnonzero(is_near).tolist():
            first, second = int(found.first[row]), int(found.second[row])
            if not self._fits(first, terms[row]) and self._fits(second, terms[row]):
                labels[row] = second
        self.place(ids, subjects, labels, found)

    def _fits(self, place: int, terms: Mapping[int, float]) -> bool:
        return any(all(stem in terms for stem in stems) for stems in self.titles[place])

    def place(self, ids: NDArray[np.int64], subjects: Matrix, first: Labels, found: Nearest | None = None) -> None:
        """Place items in the given clusters; in a second one that is about as near, if they are central to it."""
        if not len(ids):
            return
        found = found or nearest(subjects, self.centroids)
        other = np.where(found.first == first, found.second, found.first)
        own = (subjects * self.centroids[first]).sum(axis=1)
        other_score = np.where(found.first == first, found.second_score, found.first_score)
        close = (other >= 0) & (other_score >= own - CLOSE) & (other_score >= self.floors[other])
        self.ids.append(ids)
        self.first.append(first)
        self.second.append(np.where(close, other, -1).astype(np.int32))
        self.scores.append(own.astype(np.float32))


@dataclass(frozen=True)
class _Earlier:
    """What earlier proposals say of each item: its cluster or -1, its second one or OPEN, its cosine or NaN."""

    labels: Labels
    seconds: Labels
    scores: Vector


def _grouped(survey: _Survey, name: str, request: ProposalInput) -> _Group:
    sample = survey.groups[name]
    kept = _kept(name, request.earlier)
    earlier = _with_earlier(sample, kept)
    labels = _clustered(survey, earlier.labels, len(kept), name, request)
    count = max(len(kept), int(labels.max(initial=-1)) + 1)
    is_complete = len(sample.ids) == survey.counts[name]
    titles = [stems_of_name(skill.name) for _, skill in kept]
    titles += [
        _text(survey, name, np.flatnonzero(labels == place)).title_stems for place in range(len(kept), count)
    ]
    centroids = centroids_of(sample.subjects, labels, count)
    group = _Group(name, sample, labels, centroids, titles, kept, is_complete)
    group.place_sample(earlier)
    return group


def _kept(name: str, earlier: Sequence[EarlierProposal]) -> list[tuple[EarlierProposal, Skill]]:
    """Return the skills of earlier proposals about this group, those rejected, too: they are not proposed anew."""
    return [
        (proposal, skill)
        for proposal in earlier
        if (name == NEW and proposal.kind is ProposalKind.NEW) or (name and name in proposal.retires)
        for skill in proposal.creates
    ]


def _with_earlier(sample: _Sample, kept: Sequence[tuple[EarlierProposal, Skill]]) -> _Earlier:
    """Return the earlier clusters of the items; others join the nearest one if they are near enough."""
    count = len(sample.ids)
    labels, seconds = np.full(count, -1, dtype=np.int32), np.full(count, OPEN, dtype=np.int32)
    earlier = _Earlier(labels, seconds, np.full(count, np.nan, dtype=np.float32))
    if not kept:
        return earlier
    _take_earlier(sample, kept, earlier)
    return replace(earlier, labels=_joined(sample, labels, len(kept)))


def _joined(sample: _Sample, labels: Labels, count: int) -> Labels:
    """Return the labels with the items that are near enough to a cluster in it."""
    centroids = centroids_of(sample.subjects, labels, count)
    floors = np.full(count, 2.0, dtype=np.float32)
    for place in range(count):
        own = sample.subjects[labels == place] @ centroids[place]
        if len(own):
            floors[place] = np.percentile(own, JOINS_AT_PERCENTILE)
    labels, new = labels.copy(), np.flatnonzero(labels < 0)
    found = nearest(sample.subjects[new], centroids)
    joins = (found.first >= 0) & (found.first_score >= floors[found.first])
    labels[new[joins]] = found.first[joins]
    return labels


def _take_earlier(sample: _Sample, kept: Sequence[tuple[EarlierProposal, Skill]], earlier: _Earlier) -> None:
    places = {(proposal.key, skill.id): place for place, (proposal, skill) in enumerate(kept)}
    sampled_ids = set(sample.ids.tolist())
    known: dict[int, list[tuple[float, int]]] = {}
    for proposal in _unique(kept):
        for item_id in sampled_ids & proposal.members.keys():
            for skill_id, confidence in proposal.members[item_id]:
                if (place := places.get((proposal.key, skill_id))) is not None:
                    known.setdefault(item_id, []).append((-confidence, place))
    for row, item_id in enumerate(sample.ids.tolist()):
        # An item of two proposals belongs to the one that it is nearer to, and to the other as well.
        if item_id in known:
            own = sorted(known[item_id])
            earlier.labels[row], earlier.seconds[row] = own[0][1], own[1][1] if len(own) > 1 else -1
            earlier.scores[row] = _cosine(-own[0][0])


def _unique(kept: Sequence[tuple[EarlierProposal, Skill]]) -> list[EarlierProposal]:
    return list({proposal.key: proposal for proposal, _ in kept}.values())


def _clustered(survey: _Survey, labels: Labels, kept: int, name: str, request: ProposalInput) -> Labels:
    """Cluster the items that no earlier proposal has, and those that no name fits again, until nothing changes.

    What is left then goes to the nearest clusters: an item in no skill is found by no routed search.
    """
    sample, is_first = survey.groups[name], not kept
    while True:
        found = _clustered_once(survey, labels, kept, name, request)
        if np.array_equal(found, labels):
            break
        kept = int(found.max()) + 1
        labels = _joined(sample, found, kept)
    rows = np.flatnonzero(labels < 0)
    is_enough = is_first or len(rows) >= 2 * request.limits.min_members
    return _with_nearest(sample, labels, rows, kept) if kept and is_enough else labels


def _clustered_once(survey: _Survey, labels: Labels, kept: int, name: str, request: ProposalInput) -> Labels:
    """Cluster the items without a cluster. Too few of them wait for more, or join the nearest."""
    sample, limits = survey.groups[name], request.limits
    rows = np.flatnonzero(labels < 0)
    scale = len(sample.ids) / max(1, survey.counts[name])
    largest = max(2 * limits.min_members, int(HEADROOM * limits.max_share * request.sizes.catalog * scale))
    # What was too little for a proposal beside those that wait is so again, until more has come.
    if len(rows) < limits.min_members * (2 if kept else 1):
        return _with_nearest(sample, labels, rows, kept) if name != NEW and kept else labels
    count = _count(len(rows), name, request)
    smallest = max(limits.min_members, round(len(sample.ids) ** SMALLEST_ROOT))
    found = cluster(sample.subjects[rows], ClusterLimits(count, largest, smallest))
    may_wait = int(MAY_WAIT * len(sample.ids)) if name == NEW else 0
    grouping = Grouping(
        sample.subjects[rows],
        [sample.terms[row] for row in rows.tolist()],
        lambda places: _text(survey, name, rows[places]),
        GroupLimits(smallest, largest, may_wait),
    )
    if name == NEW and not grouping.has_terms(found):
        # Nothing can be said about any of them: they wait.
        return labels
    grouped = grouping.grouped(found)
    labels = labels.copy()
    labels[rows] = np.where(grouped >= 0, grouped + kept, -1)
    return labels


def _text(survey: _Survey, name: str, rows: NDArray[np.intp], central: Sequence[Item] = ()) -> ClusterText:
    return ClusterText([survey.groups[name].terms[row] for row in rows.tolist()], central, survey.shares)


def _with_nearest(sample: _Sample, labels: Labels, rows: NDArray[np.intp], kept: int) -> Labels:
    """Return the labels with these items in the nearest cluster."""
    labels = labels.copy()
    labels[rows] = nearest(sample.subjects[rows], centroids_of(sample.subjects, labels, kept)).first
    return labels


def _count(rows: int, name: str, request: ProposalInput) -> int:
    """Return how many clusters to aim at. A split has as many parts as its share of the catalog calls for."""
    of_rows: int = max(1, min(rows // 6, round(CLUSTERS_PER_ROOT * float(rows) ** 0.5)))
    if name == NEW:
        return of_rows
    share = request.sizes.members[name] / max(1, request.sizes.catalog)
    wanted = round(CLUSTERS_PER_ROOT * float(request.sizes.catalog) ** 0.5 * share / 2)
    parts: int = max(2, min(MAX_PARTS, wanted, of_rows))
    return parts


async def _place_the_rest(
    request: ProposalInput,
    survey: _Survey,
    groups: Mapping[str, _Group],
    on_progress: OnProgress,
) -> None:
    """Place the items that were not sampled, in a second pass. A small catalog needs none."""
    open_groups = {name: group for name, group in groups.items() if not group.is_complete}
    if not open_groups:
        return
    overfull = tuple(name for name in groups if name != NEW)
    sampled_ids = {name: set(group.sample.ids.tolist()) for name, group in open_groups.items()}
    seen = 0
    async for page in request.pages():
        rest: dict[str, list[Observed]] = {}
        for observed in page:
            name = _group_of(observed, overfull, request.limits)
            if name in open_groups and observed.id not in sampled_ids[name]:
                rest.setdefault(name, []).append(observed)
        for name, members in rest.items():
            vectors = _stacked(members, len(members[0].vector))
            items = [observed.item for observed in members]
            terms = survey.space.terms_of(items)
            subjects = survey.space.vectors_of(items, vectors, terms)
            ids = np.array([observed.id for observed in members], dtype=np.int64)
            open_groups[name].place_rest(ids, subjects, terms)
        seen += len(page)
        on_progress(Progress("place", seen, request.sizes.catalog))


@dataclass(frozen=True)
class _Members:
    """The members of a group's clusters: all items, with a row of the sample for those that were sampled."""

    ids: NDArray[np.int64]
    first: Labels
    second: Labels
    scores: Vector
    sizes: NDArray[np.int64]


def _members_of(group: _Group, largest: int) -> _Members:
    ids, first = np.concatenate(group.ids), np.concatenate(group.first)
    second, scores = np.concatenate(group.second), np.concatenate(group.scores)
    count = len(group.centroids)
    sizes = np.bincount(first[first >= 0], minlength=count)
    joined = sizes + np.bincount(second[second >= 0], minlength=count)
    # A cluster that second members would make too large takes none.
    full = joined > largest
    second = np.where((second >= 0) & full[np.maximum(second, 0)], -1, second).astype(np.int32)
    sizes = sizes + np.bincount(second[second >= 0], minlength=count)
    order = np.argsort(ids, kind="stable")
    return _Members(ids[order], first[order], second[order], scores[order], sizes)


def _proposals_of(
    group: _Group, survey: _Survey, request: ProposalInput, taken: frozenset[str], names: frozenset[str]
) -> list[Proposal]:
    largest = int(request.limits.max_share * request.sizes.catalog)
    members = _members_of(group, largest)
    skills, samples = _named(group, survey, taken, names)
    if group.name == NEW:
        made = [
            _new(group, survey, request, members, skills, samples, place)
            for place in range(len(skills))
            if members.sizes[place] >= request.limits.min_members
        ]
        return [proposal for proposal in made if proposal is not None]
    if sum(bool(size) for size in members.sizes) < 2:
        return []
    return [_split(group, survey, request, members, skills, samples)]


def _named(
    group: _Group, survey: _Survey, taken: frozenset[str], names: frozenset[str]
) -> tuple[list[Skill], list[tuple[str, ...]]]:
    skills: list[Skill] = []
    samples: list[tuple[str, ...]] = []
    names |= {skill.name.casefold() for _, skill in group.kept}
    for place, centroid in enumerate(group.centroids):
        rows = np.flatnonzero(group.labels == place)
        scores = np.round(group.sample.subjects[rows] @ centroid, 4)
        nearest_first = rows[np.argsort(-scores, kind="stable")][:CENTRAL_READ].tolist()
        shown = [group.sample.items[row] for row in nearest_first[:CENTRAL]]
        samples.append(tuple(f"{item.server}: {item.name}" if item.server else item.name for item in shown))
        central = [group.sample.cleaned[row] for row in nearest_first]
        if place < len(group.kept):
            skills.append(group.kept[place][1])
            continue
        skill = skill_of(_text(survey, group.name, rows, central), taken, names)
        if group.name != NEW:
            skill = replace(skill, parent_domain=group.name)
        taken |= {skill.id}
        names |= {skill.name.casefold()}
        skills.append(skill)
    return skills, samples


def _new(
    group: _Group,
    survey: _Survey,
    request: ProposalInput,
    members: _Members,
    skills: Sequence[Skill],
    samples: Sequence[tuple[str, ...]],
    place: int,
) -> Proposal | None:
    skill = skills[place]
    moves = _Moves(members, skills, place)
    evidence = ProposalEvidence(
        members=int(members.sizes[place]),
        catalog=request.sizes.catalog,
        sizes={skill.id: int(members.sizes[place])},
        samples={skill.id: samples[place]},
        nearest=_nearest_existing(group, survey, place, request),
        routing=_gain(group, survey, request, members, [place], retired=()),
    )
    return Proposal(
        ProposalKind.NEW, _key_of_new(skill), skill.name, skill.description, evidence, (skill,), (), moves
    )


def _key_of_new(skill: Skill) -> str:
    return f"new:{skill.id}"


def _split(
    group: _Group,
    survey: _Survey,
    request: ProposalInput,
    members: _Members,
    skills: Sequence[Skill],
    samples: Sequence[tuple[str, ...]],
) -> Proposal:
    used = [place for place in range(len(skills)) if members.sizes[place]]
    parent = next(skill for skill in request.skills if skill.id == group.name)
    moves = _Moves(members, skills)
    evidence = ProposalEvidence(
        members=len(members.ids),
        catalog=request.sizes.catalog,
        sizes={skills[place].id: int(members.sizes[place]) for place in used},
        samples={skills[place].id: samples[place] for place in used},
        nearest=(),
        routing=_gain(group, survey, request, members, used, retired=(parent.id,)),
    )
    names = "; ".join(skills[place].name for place in used)
    description = (
        f"{parent.name} holds {len(members.ids) / request.sizes.catalog:.0%} of the catalog. Parts: {names}."
    )
    return Proposal(
        ProposalKind.SPLIT,
        f"split:{parent.id}",
        f"Split {parent.name}",
        description,
        evidence,
        tuple(skills[place] for place in used),
        (parent.id,),
        moves,
    )


class _Moves(Sequence[Move]):
    """Moves, made when they are read: a million of them as objects would take a hundred times the memory.

    To `only` one skill, whatever else a member is in: another proposal may be decided otherwise.
    """

    def __init__(self, members: _Members, skills: Sequence[Skill], only: int | None = None) -> None:
        self._members = members
        self._skills = skills
        self._only = only
        is_member = (members.first == only) | (members.second == only)
        self._rows = np.arange(len(members.ids)) if only is None else np.flatnonzero(is_member)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> list[Move]: ...
    def __getitem__(self, index: int | slice) -> Move | list[Move]:
        if isinstance(index, slice):
            return [self._move(row) for row in self._rows[index].tolist()]
        return self._move(int(self._rows[index]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _move(self, row: int) -> Move:
        members = self._members
        first, second = int(members.first[row]), int(members.second[row])
        confidence = _confidence(float(members.scores[row]))
        less = max(MIN_CONFIDENCE, round(confidence - SECOND_LOSS, 4))
        if self._only is not None:
            own = confidence if first == self._only else less
            return Move(int(members.ids[row]), (self._skills[self._only].id,), (own,))
        if second < 0:
            return Move(int(members.ids[row]), (self._skills[first].id,), (confidence,))
        return Move(int(members.ids[row]), (self._skills[first].id, self._skills[second].id), (confidence, less))


def _confidence(cosine: float) -> float:
    """Return a confidence: a member far from the centre is still nearer to it than to any other, and a person
    approves all of them, so none is proposed again as an item that no skill fits."""
    return round(min(MAX_CONFIDENCE, max(WEAK_CONFIDENCE, LEAST_CONFIDENCE + PER_COSINE * cosine)), 4)


def _cosine(confidence: float) -> float:
    """Return a cosine that gives this confidence."""
    return (confidence - LEAST_CONFIDENCE) / PER_COSINE


def _nearest_existing(
    group: _Group, survey: _Survey, place: int, request: ProposalInput
) -> tuple[NearExisting, ...]:
    own = group.dense_centroids[place]
    active = [skill.id for skill in request.skills if skill.is_active and skill.id in survey.centroids]
    cosines = {skill_id: float(survey.centroids[skill_id] @ own) for skill_id in active}
    best = sorted(cosines, key=lambda skill_id: (-cosines[skill_id], skill_id))[:NEAREST_SHOWN]
    return tuple(NearExisting(skill_id, round(cosines[skill_id], 3)) for skill_id in best)


def _gain(
    group: _Group,
    survey: _Survey,
    request: ProposalInput,
    members: _Members,
    places: Sequence[int],
    retired: Sequence[str],
) -> RoutingGain | None:
    """Route sampled members by vector, as a search does: to the skills with the nearest centroids."""
    rows = np.flatnonzero(np.isin(group.labels, places))[:ROUTED_SAMPLE]
    if not len(rows):
        return None
    total = max(1, request.sizes.catalog)
    active = [skill.id for skill in request.skills if skill.is_active and skill.id in survey.centroids]
    before = np.array([survey.centroids[id_] for id_ in active], dtype=np.float32)
    shares_before = np.array([request.sizes.members.get(id_, 0) / total for id_ in active])
    own = np.array([active.index(group.name) if group.name in active else -1] * len(rows))
    stays = np.array([id_ not in retired for id_ in active], dtype=np.bool_)
    dense = group.dense_centroids[list(places)]
    after = np.concatenate([before[stays], dense]) if active else dense
    shares_after = np.concatenate([shares_before[stays], members.sizes[list(places)] / total])
    offset = int(stays.sum())
    positions = {place: offset + position for position, place in enumerate(places)}
    own_after = np.array([positions[int(label)] for label in group.labels[rows]])
    vectors = group.sample.vectors[rows]
    reached_before, searched_before = _routed(vectors, before, own, shares_before)
    reached_after, searched_after = _routed(vectors, after, own_after, shares_after)
    return RoutingGain(len(rows), reached_before, reached_after, searched_before, searched_after)


def _routed(
    vectors: Matrix, centroids: Matrix, own: NDArray[np.intp], shares: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the share of rows that reach their own skill, and the mean share of the catalog searched for it."""
    if not len(centroids):
        return 0.0, 0.0
    order = np.argsort(-np.round(vectors @ centroids.T, 5), axis=1, kind="stable")[:, :ROUTED_SKILLS]
    reached = (order == own[:, None]).any(axis=1).mean()
    return round(float(reached), 4), round(float(np.minimum(1.0, shares[order].sum(axis=1)).mean()), 4)


def _merges(survey: _Survey, request: ProposalInput) -> list[Proposal]:
    """Propose to merge skills whose centroids are all but the same, the smaller into the larger. One whose items
    may not move stays."""
    sizes, limits = request.sizes.members, request.limits
    active = [skill for skill in request.skills if skill.is_active and skill.id in survey.centroids]
    active.sort(key=lambda skill: (-sizes.get(skill.id, 0), skill.id))
    merged: set[str] = set()
    proposals = []
    for place, larger in enumerate(active):
        for smaller in active[place + 1 :]:
            if merged & {larger.id, smaller.id} or smaller.id not in survey.movable:
                continue
            cosine = float(survey.centroids[larger.id] @ survey.centroids[smaller.id])
            together = sizes.get(larger.id, 0) + sizes.get(smaller.id, 0)
            if cosine < limits.merge_cosine or together > limits.max_share * request.sizes.catalog:
                continue
            merged |= {larger.id, smaller.id}
            proposals.append(_merge(larger, smaller, cosine, request))
    return proposals


def _merge(larger: Skill, smaller: Skill, cosine: float, request: ProposalInput) -> Proposal:
    members = request.sizes.members.get(smaller.id, 0)
    evidence = ProposalEvidence(
        members=members,
        catalog=request.sizes.catalog,
        sizes={larger.id: members + request.sizes.members.get(larger.id, 0)},
        nearest=(NearExisting(larger.id, round(cosine, 3)),),
    )
    return Proposal(
        ProposalKind.MERGE,
        f"merge:{smaller.id}:{larger.id}",
        f"Merge {smaller.name} into {larger.name}",
        f"The two hold items of one kind: the cosine of their centroids is {cosine:.2f}.",
        evidence,
        retires=(smaller.id,),
    )


def _retirements(request: ProposalInput) -> list[Proposal]:
    """Propose to retire active skills without items in any namespace, once the catalog is large enough to tell.

    A skill of an approved proposal is empty until its items have moved.
    """
    if request.sizes.catalog < request.limits.min_catalog_to_retire:
        return []
    moving = {skill.id for earlier in request.earlier for skill in earlier.creates}
    used = request.sizes.used | request.sizes.members.keys() | moving
    empty = sorted(
        (skill for skill in request.skills if skill.is_active and skill.id not in used),
        key=lambda skill: skill.id,
    )
    return [
        Proposal(
            ProposalKind.RETIRE,
            f"retire:{skill.id}",
            f"Retire {skill.name}",
            f"None of {request.sizes.catalog:,} items is in it.",
            ProposalEvidence(members=0, catalog=request.sizes.catalog),
            retires=(skill.id,),
        )
        for skill in empty
    ]
