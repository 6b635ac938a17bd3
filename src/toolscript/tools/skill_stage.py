"""The skill stage: which skills a query is routed by.

By the vector of their items: the nearest ones that are near enough. By the words of their items: those that
together hold the items which share the most words with the query. Vectors alone are wrong too often: docs/why.md.
"""

from collections.abc import Mapping, Sequence

from toolscript.core.retrieval.model import Ask, Candidate, Condition, Fields, Vector, Where
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.request import Request
from toolscript.core.taxonomy import skill_point_id
from toolscript.tools.model.answer import MatchedBy, MatchedSkill
from toolscript.tools.payload_cache import CachedPayloads, PayloadCache, revisions_of
from toolscript.tools.score_scale import reaches

MAX_SKILLS = 8
MIN_BY_WORDS = 3
WORD_HITS = 10
SKILL_FIELDS = ("id", "name", "description", "tool_count", "is_active")
ACTIVE = Condition("is_active", (True,))

SkillsOfItems = Sequence[tuple[str, ...]]


class SkillMatching:
    def __init__(self, skills: Index, items: Index, cache: PayloadCache) -> None:
        self._skills = skills
        self._items = items
        self._cache = cache
        self._remembered_skills = PayloadCache(skills)

    async def by_words(self, request: Request, where: Where) -> SkillsOfItems:
        """The skills of each of the items that share the most words with the request. Needs no vector."""
        ask = Ask(terms=request.whole.terms, where=where, limit=WORD_HITS)
        hits = (await self._items.search(ask)).words or ()
        read = await self._cache.read(revisions_of(hits))
        return [read[hit.id].skill_ids for hit in hits if hit.id in read]

    async def match(
        self, vector: Vector | None, worded: SkillsOfItems, limit: int, threshold: float
    ) -> tuple[MatchedSkill, ...]:
        """At most `limit` by vector, then by words what is missing."""
        named = tuple(dict.fromkeys(skill for skills in worded for skill in skills))
        near, known = await self._ask(vector, named, limit, threshold)
        active = [[skill for skill in skills if skill in known] for skills in worded]
        covered = covering(active, already=near, maximum=room_for_words(len(near)))
        return (*near.values(), *(known[skill] for skill in covered))

    async def _ask(
        self, vector: Vector | None, named: Sequence[str], limit: int, threshold: float
    ) -> tuple[dict[str, MatchedSkill], dict[str, MatchedSkill]]:
        """The nearest that are near enough, and those of the named that are active, in one go."""
        points = tuple(map(skill_point_id, named))
        if vector is None:
            fields = (await self._skills.fields(points, SKILL_FIELDS)).values() if points else ()
            active = [one for one in fields if one.get("is_active")]
            return {}, {str(one["id"]): _matched(one, None, MatchedBy.WORDS) for one in active}
        asks = [Ask(vector, where=(ACTIVE,), limit=limit)]
        if points:
            asks.append(Ask(vector, where=(ACTIVE,), limit=len(points), only=points))
        near, *known = [candidates.dense or () for candidates in await self._skills.search_all(asks)]
        near_enough = [hit for hit in near if reaches(hit.score, threshold)]
        worded = [hit for hits in known for hit in hits]
        read = await self._remembered_skills.read(revisions_of([*near_enough, *worded]))
        return _all_matched(near_enough, read, MatchedBy.VECTOR), _all_matched(worded, read, MatchedBy.WORDS)


def room_for_words(by_vector: int) -> int:
    """`MAX_SKILLS` in all; whoever asks for more by vector loses none of what the words would have found."""
    return max(MIN_BY_WORDS, MAX_SKILLS - by_vector)


def covering(items: Sequence[Sequence[str]], *, already: Mapping[str, object], maximum: int) -> list[str]:
    """The fewest skills that hold the items not held already, greedily: whichever holds the most of them next."""
    missing = [skills for skills in items if skills and not any(skill in already for skill in skills)]
    chosen: list[str] = []
    while missing and len(chosen) < maximum:
        held = dict.fromkeys((skill for skills in missing for skill in skills), 0)
        for skills in missing:
            for skill in skills:
                held[skill] += 1
        # Of equals the first: it belongs to the item that shares the most words.
        best = max(held, key=lambda skill: held[skill])
        chosen.append(best)
        missing = [skills for skills in missing if best not in skills]
    return chosen


def _all_matched(hits: Sequence[Candidate], read: CachedPayloads, by: MatchedBy) -> dict[str, MatchedSkill]:
    """Best first; one that is gone meanwhile is left out."""
    matched = [_matched(read[hit.id].fields, hit.score, by) for hit in hits if hit.id in read]
    return {skill.id: skill for skill in sorted(matched, key=lambda skill: (-(skill.score or 0.0), skill.id))}


def _matched(fields: Fields, score: float | None, by: MatchedBy) -> MatchedSkill:
    return MatchedSkill(
        id=str(fields["id"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=None if score is None else min(1.0, max(0.0, score)),
        tool_count=int(str(fields["tool_count"])),
        matched_by=by,
    )
