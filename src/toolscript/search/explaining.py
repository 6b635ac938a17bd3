"""Says of what was returned how it came to its place, and of what was not, why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolscript.model.index import Ask, Candidate, Candidates, Fields
from toolscript.model.models import Vector
from toolscript.model.queries import Strategy
from toolscript.model.results import Absence, AbsenceReason, Explanation, ToolHit
from toolscript.model.tool_ids import tool_id
from toolscript.model.words import query_terms
from toolscript.ports import Index
from toolscript.search.asked import Asked
from toolscript.search.fallbacks import Part
from toolscript.search.item_stage import Searched, Verdict
from toolscript.search.point_memory import skills_of
from toolscript.search.ranking import CANDIDATES_PER_ARM

NAMED_FIELDS = ("server", "name", "type", "skill_ids")


@dataclass(frozen=True)
class Outcome:
    """What a search came to."""

    asked: Asked
    vectors: Sequence[Vector] | None
    searched: Searched
    verdict: Verdict
    hits: tuple[ToolHit, ...]

    def place(self, id_: int) -> int | None:
        return next((at for at, one in enumerate(self.verdict.scored, 1) if one.id == id_), None)

    def explanation(self, id_: int, skill_ids: Sequence[str]) -> Explanation | None:
        place = self.place(id_)
        if place is None:
            return None
        ranking, whole = self.verdict.ranking, self.searched.retrieved.whole
        routed = self.searched.routed or ()
        return Explanation(
            place=place,
            parts={} if ranking is None else ranking.parts(place - 1),
            similarity=_score(whole.dense, id_),
            word_score=_score(whole.words, id_),
            matched_skills=tuple(skill for skill in skill_ids if skill in routed),
        )


class Explaining:
    def __init__(self, index: Index) -> None:
        self._index = index

    def hits(self, outcome: Outcome) -> tuple[ToolHit, ...]:
        return tuple(replace(hit, explanation=outcome.explanation(hit.id, hit.skill_ids)) for hit in outcome.hits)

    async def absence(self, outcome: Outcome) -> Absence:
        about = outcome.asked.query.about
        nothing: tuple[int, Fields] | None = None
        work = self._named(about)
        known = await outcome.asked.attempt.or_else(Part.INDEX, work, nothing)
        if known is None:
            failed = Part.INDEX in outcome.asked.attempt.failed
            reason = AbsenceReason.NOTHING_SEARCHED if failed else AbsenceReason.UNKNOWN
            return Absence(about, reason, NOT_SEARCHED if failed else NOT_KNOWN)
        id_, fields = known
        explained = await self._explained(outcome, id_, skills_of(fields))
        reason, message = _why(outcome, id_, fields, explained)
        scored = outcome.verdict.scored
        score = None if explained is None or not explained.place else scored[explained.place - 1].score
        return Absence(about, reason, message, id_, score, explained, skills_of(fields))

    async def _named(self, about: str) -> tuple[int, Fields] | None:
        """By id, or by name as it is shown; a name is looked for among the items that share its words."""
        if about.isascii() and about.isdigit() and len(about) < 19:
            found = await self._index.fields([int(about)], NAMED_FIELDS)
            return next(iter(found.items()), None)
        ask = Ask(terms=query_terms(about.replace("__", " ")), limit=CANDIDATES_PER_ARM, fields=NAMED_FIELDS)
        hits = (await self._index.search(ask)).words or ()
        return next(((hit.id, hit.fields) for hit in hits if about in _names(hit.fields)), None)

    async def _explained(self, outcome: Outcome, id_: int, skill_ids: Sequence[str]) -> Explanation | None:
        """Of an item that no arm has named, what the arms would have said of it."""
        if known := outcome.explanation(id_, skill_ids):
            return known
        request, vectors = outcome.asked.request, outcome.vectors
        ask = Ask(vectors[0] if vectors else None, request.whole.terms, only=(id_,), limit=1)
        said = await outcome.asked.attempt.or_else(Part.INDEX, self._index.search(ask), Candidates())
        routed = outcome.searched.routed or ()
        return Explanation(
            place=0,
            similarity=_score(said.dense, id_),
            word_score=_score(said.words, id_),
            matched_skills=tuple(skill for skill in skill_ids if skill in routed),
        )


NOT_KNOWN = (
    "no such item is in the index: give its id, or its name as `server__name`; "
    "`toolscript doctor --index` tells whether the index is complete"
)
NOT_SEARCHED = "the index did not answer: see `degraded`, and try again"


def _why(outcome: Outcome, id_: int, fields: Fields, explained: Explanation | None) -> tuple[AbsenceReason, str]:
    query, routed = outcome.asked.query, outcome.searched.routed
    skills = skills_of(fields)
    place = explained.place if explained else 0
    if any(hit.id == id_ for hit in outcome.hits):
        return AbsenceReason.RETURNED, f"it is returned, at place {place}"
    if query.kind is not None and fields["type"] != query.kind.value:
        return AbsenceReason.OTHER_KIND, f"it is a {fields['type']}; the search asks for each {query.kind.value}"
    if place:
        return _behind(outcome, place)
    if routed is not None and outcome.searched.strategy is Strategy.HIERARCHICAL:
        if not skills:
            return AbsenceReason.NO_SKILL, "it is in no skill: `direct` and `hybrid` search it; or assign it one"
        if not explained or not explained.matched_skills:
            return AbsenceReason.SKILLS_NOT_MATCHED, _unmatched(skills, routed)
    return (
        AbsenceReason.NOT_A_CANDIDATE,
        f"{CANDIDATES_PER_ARM} items or more mean and say what was asked for better than this one does",
    )


def _behind(outcome: Outcome, place: int) -> tuple[AbsenceReason, str]:
    query, score = outcome.asked.query, outcome.verdict.scored[place - 1].score
    if score < query.threshold:
        text = f"its score is {score:.3f}, below the threshold of {query.threshold}: lower `tool_threshold`"
        return AbsenceReason.BELOW_THRESHOLD, text
    return AbsenceReason.BEYOND_LIMIT, f"it is at place {place}, beyond the limit of {query.limit}: raise `limit`"


def _unmatched(skills: Sequence[str], routed: Sequence[str]) -> str:
    return (
        f"it is in {', '.join(skills)}; the search was routed to {', '.join(routed)}: "
        "lower `skill_threshold`, raise `skill_limit`, or use `hybrid`"
    )


def _names(fields: Fields) -> tuple[str, str]:
    return str(fields["name"]), tool_id(str(fields["server"]), str(fields["name"]))


def _score(arm: Sequence[Candidate] | None, id_: int) -> float | None:
    return next((hit.score for hit in arm or () if hit.id == id_), None)
