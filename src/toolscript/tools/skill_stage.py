"""The skill stage: selects the skills that a query is routed to.

By vector: the skills with the nearest centroids that reach the threshold. By words: the skills that together cover
the items with the best BM25 scores. Vectors alone are wrong too often, and so are words alone: docs/why.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import Candidate, Condition, Fields, IndexQuery, Vector, Where
from toolscript.core.retrieval.ports import IndexReader
from toolscript.core.retrieval.request import Request
from toolscript.core.taxonomy import skill_point_id
from toolscript.tools.model.answer import MatchedBy, MatchedSkill
from toolscript.tools.payload_cache import CachedPayloads, PayloadCache, revisions_of, skills_of
from toolscript.tools.score_scale import reaches

MAX_SKILLS = 8
MIN_BY_WORDS = 3
MORE_BY_STEP = 1
WORD_HITS = 10
# Of the threshold: skills that share words with the request, and are all further from it, match nothing.
NEAR_SHARE = 0.75
SKILL_FIELDS = ("id", "name", "description", "tool_count", "is_active")
SKILLS_OF_ITEM = ("skill_ids",)
ACTIVE = Condition("is_active", (True,))

SkillsOfItems = Sequence[tuple[str, ...]]


class SkillMatching:
    """Matches the skills of some namespaces. A skill has a point in each, with the centroid of its items there."""

    def __init__(
        self,
        skills: IndexReader,
        items: IndexReader,
        namespaces: Sequence[str] = (DEFAULT_NAMESPACE,),
    ) -> None:
        self._skills = skills
        self._items = items
        self._namespaces = namespaces
        self._skill_cache = PayloadCache(skills)

    async def by_words(self, request: Request, where: Where) -> SkillsOfItems:
        """Return the skills of each of the best items of the sparse retriever, by the whole request and by each
        sub-query. Needs no vector. Their payloads come along: a second call would be one more in a row."""
        asks = [
            IndexQuery(terms=part.terms, where=where, limit=WORD_HITS, fields=SKILLS_OF_ITEM)
            for part in request.parts
        ]
        hits = [hit for candidates in await self._items.search_all(asks) for hit in candidates.words or ()]
        return list({hit.id: skills_of(hit.fields) for hit in hits}.values())

    async def match(
        self, vector: Vector | None, word_matches: SkillsOfItems, limit: int, threshold: float, steps: int = 0
    ) -> tuple[MatchedSkill, ...]:
        """Return at most `limit` skills by vector, then those by words that are missing.

        Where all of them are far, none matches: they would only lock the items of all others out. Without a vector
        nobody knows how near they are.
        """
        named = tuple(dict.fromkeys(skill for skills in word_matches for skill in skills))
        near, by_words = await self._search(vector, named, limit, threshold)
        if len(self._namespaces) > 1:
            near, by_words = await self._joined(near, limit), await self._joined(by_words, len(by_words))
        active = [[skill for skill in skills if skill in by_words] for skills in word_matches]
        covered = covering(active, already=near, maximum=room_for_words(len(near), steps))
        matched = (*near.values(), *(by_words[skill] for skill in covered))
        if vector is None or any(reaches(skill.score or 0.0, NEAR_SHARE * threshold) for skill in matched):
            return matched
        return ()

    async def _search(
        self, vector: Vector | None, named: Sequence[str], limit: int, threshold: float
    ) -> tuple[dict[str, MatchedSkill], dict[str, MatchedSkill]]:
        """Return the nearest skills that reach the threshold, and the named ones that are active, in one call."""
        points = self._points_of(named)
        if vector is None:
            payloads = (await self._skills.fields(points, SKILL_FIELDS)).values() if points else ()
            active = [fields for fields in payloads if fields.get("is_active")]
            return {}, {str(fields["id"]): _matched(fields, None, MatchedBy.WORDS) for fields in active}
        # The nearest points of several namespaces may all be those of one skill.
        asks = [IndexQuery(vector, where=(ACTIVE,), limit=limit * max(1, len(self._namespaces)))]
        if points:
            asks.append(IndexQuery(vector, where=(ACTIVE,), limit=len(points), only=points))
        near, *by_words = [candidates.dense or () for candidates in await self._skills.search_all(asks)]
        near_enough = [hit for hit in near if reaches(hit.score, threshold)]
        word_hits = [hit for hits in by_words for hit in hits]
        read = await self._skill_cache.read(revisions_of([*near_enough, *word_hits]))
        return _all_matched(near_enough, read, MatchedBy.VECTOR), _all_matched(word_hits, read, MatchedBy.WORDS)

    async def _joined(self, matched: Mapping[str, MatchedSkill], limit: int) -> dict[str, MatchedSkill]:
        """Return the first skills, each with its items of all namespaces."""
        kept = dict(islice(matched.items(), limit))
        counts = dict.fromkeys(kept, 0)
        payloads = await self._skills.fields(self._points_of(tuple(kept)), SKILL_FIELDS) if kept else {}
        for fields in payloads.values():
            if fields.get("is_active"):
                counts[str(fields["id"])] += int(str(fields["tool_count"]))
        return {id_: replace(skill, tool_count=counts[id_]) for id_, skill in kept.items()}

    def _points_of(self, skills: Sequence[str]) -> tuple[int, ...]:
        return tuple(skill_point_id(skill, namespace) for namespace in self._namespaces for skill in skills)


def room_for_words(by_vector: int, steps: int = 0) -> int:
    """`MAX_SKILLS` in all, but at least `MIN_BY_WORDS` by words, however many are requested by vector, and
    `MORE_BY_STEP` more for each step of the request."""
    return max(MIN_BY_WORDS, MAX_SKILLS - by_vector) + MORE_BY_STEP * steps


def covering(items: Sequence[Sequence[str]], *, already: Mapping[str, object], maximum: int) -> list[str]:
    """Greedy set cover: the fewest skills that contain the items not covered by the skills in `already`."""
    missing = [skills for skills in items if skills and not any(skill in already for skill in skills)]
    chosen: list[str] = []
    while missing and len(chosen) < maximum:
        held = dict.fromkeys((skill for skills in missing for skill in skills), 0)
        for skills in missing:
            for skill in skills:
                held[skill] += 1
        # On a tie the first wins: it belongs to the item with the best BM25 score.
        best = max(held, key=lambda skill: held[skill])
        chosen.append(best)
        missing = [skills for skills in missing if best not in skills]
    return chosen


def _all_matched(hits: Sequence[Candidate], read: CachedPayloads, by: MatchedBy) -> dict[str, MatchedSkill]:
    """Best first, each skill by its best point; skills that were removed meanwhile are left out."""
    matched = [_matched(read[hit.id].fields, hit.score, by) for hit in hits if hit.id in read]
    best: dict[str, MatchedSkill] = {}
    for skill in sorted(matched, key=lambda skill: (-(skill.score or 0.0), skill.id)):
        best.setdefault(skill.id, skill)
    return best


def _matched(fields: Fields, score: float | None, by: MatchedBy) -> MatchedSkill:
    return MatchedSkill(
        id=str(fields["id"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=None if score is None else min(1.0, max(0.0, score)),
        tool_count=int(str(fields["tool_count"])),
        matched_by=by,
    )
