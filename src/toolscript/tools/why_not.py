"""Why an item was not returned, and what would bring it back; the explanation of a hit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolscript.core.items import ItemKind, tool_id
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.model import Ask, Candidate, Candidates, Fields, Vector
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.rerank import CANDIDATES_PER_RETRIEVER
from toolscript.core.retrieval.terms import query_terms
from toolscript.tools.context import SearchContext
from toolscript.tools.item_stage import Searched, Verdict
from toolscript.tools.model.answer import AbsenceReason, Explanation, ToolHit, WhyNotAnswer
from toolscript.tools.model.query import Strategy
from toolscript.tools.payload_cache import skills_of
from toolscript.tools.score_scale import reaches

NAMED_FIELDS = ("server", "name", "type", "skill_ids")
NEAREST = 3
NO_SUCH_ID = "no such item is in the index: give another id, or its name as `server__name`"
NOT_FOUND_BY_NAME = "not found by the words of its name: give its id"
NOT_SEARCHED = "the index did not answer: see `degraded`, and try again"


@dataclass(frozen=True)
class Outcome:
    """What a search came to."""

    context: SearchContext
    vectors: Sequence[Vector] | None
    searched: Searched
    verdict: Verdict
    hits: tuple[ToolHit, ...]

    def explained_hits(self) -> tuple[ToolHit, ...]:
        return tuple(replace(hit, explanation=self.explanation(hit.id, hit.skill_ids)) for hit in self.hits)

    def explanation(self, id_: int, skill_ids: Sequence[str]) -> Explanation | None:
        """None for an item that is no candidate."""
        place = next((index for index, scored in enumerate(self.verdict.scored, 1) if scored.id == id_), None)
        if place is None:
            return None
        parts = {} if self.verdict.ranking is None else self.verdict.ranking.parts(place - 1)
        return self.said_of(id_, skill_ids, self._wholes(), place, parts)

    def said_of(
        self,
        id_: int,
        skill_ids: Sequence[str],
        said: Sequence[Candidates],
        place: int = 0,
        parts: dict[str, float] | None = None,
    ) -> Explanation:
        routed = self.searched.skill_ids_used or ()
        return Explanation(
            place=place,
            parts=parts or {},
            similarity=_retriever_score((candidates.dense for candidates in said), id_),
            word_score=_retriever_score((candidates.words for candidates in said), id_),
            matched_skills=tuple(skill for skill in skill_ids if skill in routed),
        )

    def _wholes(self) -> list[Candidates]:
        """What the arms said of the whole request, wherever they looked."""
        retrieved = self.searched.retrieved
        return [candidate_lists[0] for candidate_lists in (retrieved.direct, retrieved.routed) if candidate_lists]


def _retriever_score(retrievers: Iterator[Sequence[Candidate] | None], id_: int) -> float | None:
    return next((hit.score for arm in retrievers for hit in arm or () if hit.id == id_), None)


@dataclass(frozen=True)
class _Named:
    """The item that is meant, None where none is called so; and others that may be."""

    item: tuple[int, Fields] | None = None
    others: tuple[str, ...] = ()


class WhyNotExplainer:
    def __init__(self, index: Index) -> None:
        self._index = index

    async def of(self, outcome: Outcome) -> WhyNotAnswer:
        query, attempt = outcome.context.query, outcome.context.attempt
        named = await attempt.or_else(Part.INDEX, self._named(query.about, query.kind), None)
        if named is None or not outcome.searched.retrieved.anything:
            return WhyNotAnswer(query.about, AbsenceReason.NOTHING_SEARCHED, NOT_SEARCHED)
        if named.item is None:
            return WhyNotAnswer(query.about, AbsenceReason.UNKNOWN, _unknown(query.about), others=named.others)
        id_, fields = named.item
        explained = await self._explained(outcome, id_, skills_of(fields))
        reason, message = _why(outcome, id_, fields, explained)
        return WhyNotAnswer(
            query.about,
            reason,
            message,
            id=id_,
            name=_name(fields),
            score=_final_score(outcome, explained),
            explanation=explained,
            skill_ids=skills_of(fields),
            others=named.others,
        )

    async def _named(self, about: str, kind: ItemKind | None) -> _Named:
        """By id, or by name as it is shown; a name is looked for among the items that share its words.

        Of those that are called the same, one of the kind that is asked for is meant.
        """
        if _is_id(about):
            found = await self._index.fields([int(about)], NAMED_FIELDS)
            return _Named(next(iter(found.items()), None))
        ask = Ask(terms=query_terms(about.replace("__", " ")), limit=CANDIDATES_PER_RETRIEVER, fields=NAMED_FIELDS)
        hits = (await self._index.search(ask)).words or ()
        same = [hit for hit in hits if about in {_name(hit.fields), str(hit.fields["name"])}]
        meant = min(same, key=lambda hit: kind is not None and hit.fields["type"] != kind.value, default=None)
        others = tuple(_name(hit.fields) for hit in same or hits if hit is not meant)[:NEAREST]
        return _Named(None if meant is None else (meant.id, meant.fields), others)

    async def _explained(self, outcome: Outcome, id_: int, skill_ids: Sequence[str]) -> Explanation:
        """Of an item that no arm has named, what the arms would have said of it."""
        if known := outcome.explanation(id_, skill_ids):
            return known
        request, vectors = outcome.context.request, outcome.vectors
        ask = Ask(vectors[0] if vectors else None, request.whole.terms, only=(id_,), limit=1)
        candidates = await outcome.context.attempt.or_else(Part.INDEX, self._index.search(ask), Candidates())
        return outcome.said_of(id_, skill_ids, [candidates])


def _is_id(about: str) -> bool:
    return about.isascii() and about.isdigit() and len(about) < 19


def _unknown(about: str) -> str:
    """Many items may share the words of a name and be nearer: of an id alone it is sure that there is none."""
    return NO_SUCH_ID if _is_id(about) else NOT_FOUND_BY_NAME


def _why(outcome: Outcome, id_: int, fields: Fields, explained: Explanation) -> tuple[AbsenceReason, str]:
    query, searched = outcome.context.query, outcome.searched
    if any(hit.id == id_ for hit in outcome.hits):
        return AbsenceReason.RETURNED, f"it is returned, at place {explained.place}"
    if query.kind is not None and fields["type"] != query.kind.value:
        return AbsenceReason.OTHER_KIND, f"it is a {fields['type']}; the search asks for {query.kind.value}s only"
    if explained.place:
        return _behind(outcome, explained.place)
    if searched.strategy is Strategy.HIERARCHICAL and not explained.matched_skills:
        return _not_routed(outcome, skills_of(fields), explained)
    return AbsenceReason.NOT_A_CANDIDATE, _not_named(explained)


def _behind(outcome: Outcome, place: int) -> tuple[AbsenceReason, str]:
    query, score = outcome.context.query, outcome.verdict.scored[place - 1].score
    beyond = f"it is at place {place}, beyond the limit of {query.limit}: raise `limit`"
    if reaches(score, query.threshold):
        return (AbsenceReason.BEYOND_LIMIT, beyond) if place > query.limit else _not_read(place)
    low = f"its score is {score:.3f}, below the threshold of {query.threshold}: lower `tool_threshold`"
    return AbsenceReason.BELOW_THRESHOLD, f"{low}; and {beyond}" if place > query.limit else low


def _not_read(place: int) -> tuple[AbsenceReason, str]:
    text = f"it belongs at place {place}, and what the index holds of it could not be read: try again"
    return AbsenceReason.NOTHING_SEARCHED, text


def _not_routed(outcome: Outcome, skills: Sequence[str], explained: Explanation) -> tuple[AbsenceReason, str]:
    also = _too_far(outcome, explained)
    if not skills:
        text = "it is in no skill: `direct` and `hybrid` search it too; or assign it one"
        return AbsenceReason.NO_SKILL, text + also
    routed = ", ".join(outcome.searched.skill_ids_used or ())
    text = (
        f"it is in {', '.join(skills)}; the search was routed to {routed}: "
        "lower `skill_threshold`, raise `skill_limit`, or use `hybrid`"
    )
    return AbsenceReason.SKILLS_NOT_MATCHED, text + also


def _too_far(outcome: Outcome, explained: Explanation) -> str:
    """What would still be in its way."""
    threshold, similarity = outcome.context.query.threshold, explained.similarity
    if similarity is None or similarity >= threshold:
        return ""
    return f"; its similarity is {similarity:.3f}, below the threshold of {threshold}: lower `tool_threshold`, too"


def _not_named(explained: Explanation) -> str:
    if explained.similarity is None and explained.word_score is None:
        return "it shares no word with the query, and meaning was not compared"
    return (
        f"{CANDIDATES_PER_RETRIEVER} items or more fit better in every way that was searched: ask in other words"
    )


def _final_score(outcome: Outcome, explained: Explanation) -> float | None:
    if not explained.place:
        return None
    return min(1.0, max(0.0, outcome.verdict.scored[explained.place - 1].score))


def _name(fields: Fields) -> str:
    return tool_id(str(fields["server"]), str(fields["name"]))
