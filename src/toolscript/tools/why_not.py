"""Why an item was not returned, and what would bring it back; the explanation of a hit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolscript.core.items import ItemKind, tool_id
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.fusion import CANDIDATES_PER_RETRIEVER
from toolscript.core.retrieval.model import Candidate, Candidates, Fields, IndexQuery, Vector
from toolscript.core.retrieval.ports import IndexReader
from toolscript.core.retrieval.terms import query_terms
from toolscript.tools.context import SearchContext
from toolscript.tools.item_stage import RankedItems, RetrievalResult
from toolscript.tools.model.answer import AbsenceReason, Explanation, ToolHit, WhyNotAnswer
from toolscript.tools.model.query import Strategy
from toolscript.tools.payload_cache import skills_of
from toolscript.tools.ports import ItemLookup
from toolscript.tools.score_scale import reaches

NAMED_FIELDS = ("server", "name", "type", "skill_ids")
NEAREST = 3
NO_SUCH_ID = "the index has no item with this id: use another id, or its name as `server__name`"
NOT_FOUND_BY_NAME = "not found by the words of its name: use its id"
NOT_SEARCHED = "the index did not answer: see `degraded`, and try again"


@dataclass(frozen=True)
class Outcome:
    """The result of a search, with everything needed to explain it."""

    context: SearchContext
    vectors: Sequence[Vector] | None
    retrieval: RetrievalResult
    ranked: RankedItems
    hits: tuple[ToolHit, ...]

    def explained_hits(self) -> tuple[ToolHit, ...]:
        return tuple(replace(hit, explanation=self.explanation(hit.id, hit.skill_ids)) for hit in self.hits)

    def explanation(self, id_: int, skill_ids: Sequence[str]) -> Explanation | None:
        """Return how the item got its place; None for an item that is no candidate."""
        place = next((index for index, scored in enumerate(self.ranked.items, 1) if scored.id == id_), None)
        if place is None:
            return None
        parts = {} if self.ranked.ranking is None else self.ranked.ranking.parts(place - 1)
        return self.explanation_from(self._whole_query_candidates(), id_, skill_ids, place, parts)

    def explanation_from(
        self,
        candidate_lists: Sequence[Candidates],
        id_: int,
        skill_ids: Sequence[str],
        place: int = 0,
        parts: dict[str, float] | None = None,
    ) -> Explanation:
        routed = self.retrieval.skill_ids_used or ()
        return Explanation(
            place=place,
            parts=parts or {},
            similarity=_retriever_score((candidates.dense for candidates in candidate_lists), id_),
            word_score=_retriever_score((candidates.words for candidates in candidate_lists), id_),
            matched_skills=tuple(skill for skill in skill_ids if skill in routed),
            promoted_for=promoted.words if (promoted := self.context.promoted.get(id_)) else None,
        )

    def _whole_query_candidates(self) -> list[Candidates]:
        """Return the candidates of the whole query, from each search that ran."""
        candidates = self.retrieval.candidates
        return [
            candidate_lists[0] for candidate_lists in (candidates.direct, candidates.routed) if candidate_lists
        ]


def _retriever_score(retrievers: Iterator[Sequence[Candidate] | None], id_: int) -> float | None:
    return next((hit.score for hits in retrievers for hit in hits or () if hit.id == id_), None)


@dataclass(frozen=True)
class _Match:
    """The item that matches the id or name, None if none does; and other possible items."""

    item: tuple[int, Fields] | None = None
    alternatives: tuple[str, ...] = ()


class WhyNotExplainer:
    def __init__(self, index: IndexReader, catalog: ItemLookup) -> None:
        self._index = index
        self._catalog = catalog

    async def of(self, outcome: Outcome) -> WhyNotAnswer:
        query, attempt = outcome.context.query, outcome.context.attempt
        match = await attempt.or_else(Part.INDEX, self._find(query.about, query.kind, attempt), None)
        if match is None or not outcome.retrieval.candidates.anything:
            return WhyNotAnswer(query.about, AbsenceReason.NOTHING_SEARCHED, NOT_SEARCHED)
        if match.item is None:
            message = _unknown(query.about)
            return WhyNotAnswer(query.about, AbsenceReason.UNKNOWN, message, others=match.alternatives)
        id_, fields = match.item
        explanation = await self._explain(outcome, id_, skills_of(fields))
        reason, message = _why(outcome, id_, fields, explanation)
        return WhyNotAnswer(
            query.about,
            reason,
            message,
            id=id_,
            name=_name(fields),
            score=_final_score(outcome, explanation),
            explanation=explanation,
            skill_ids=skills_of(fields),
            others=match.alternatives,
        )

    async def _find(self, about: str, kind: ItemKind | None, attempt: Attempt) -> _Match:
        """Find an item by id or by displayed name; a name is searched among the items that share its words.

        Among items of the same name, prefer one of the requested kind.
        """
        if _is_id(about):
            ids = [int(about)]
            removed = await self._removed(ids, attempt)
            payloads = {} if removed else await self._index.fields(ids, NAMED_FIELDS)
            return _Match(next(iter(payloads.items()), None))
        ask = IndexQuery(
            terms=query_terms(about.replace("__", " ")), limit=CANDIDATES_PER_RETRIEVER, fields=NAMED_FIELDS
        )
        found = (await self._index.search(ask)).words or ()
        removed = await self._removed([hit.id for hit in found], attempt)
        hits = [hit for hit in found if hit.id not in removed]
        same_name = [hit for hit in hits if about in {_name(hit.fields), str(hit.fields["name"])}]
        match = min(same_name, key=lambda hit: kind is not None and hit.fields["type"] != kind.value, default=None)
        alternatives = tuple(_name(hit.fields) for hit in same_name or hits if hit is not match)[:NEAREST]
        return _Match(None if match is None else (match.id, match.fields), alternatives)

    async def _removed(self, ids: Sequence[int], attempt: Attempt) -> frozenset[int]:
        nothing = frozenset[int]()
        return await attempt.or_else(Part.CATALOG, self._catalog.removed(ids), nothing)

    async def _explain(self, outcome: Outcome, id_: int, skill_ids: Sequence[str]) -> Explanation:
        """Explain the item; if it is no candidate, with the scores that the retrievers give it."""
        if explanation := outcome.explanation(id_, skill_ids):
            return explanation
        request, vectors = outcome.context.request, outcome.vectors
        ask = IndexQuery(vectors[0] if vectors else None, request.whole.terms, only=(id_,), limit=1)
        candidates = await outcome.context.attempt.or_else(Part.INDEX, self._index.search(ask), Candidates())
        return outcome.explanation_from([candidates], id_, skill_ids)


def _is_id(about: str) -> bool:
    return about.isascii() and about.isdigit() and len(about) < 19


def _unknown(about: str) -> str:
    """Only an unknown id is certain: a name may be missing because many items that share its words rank higher."""
    return NO_SUCH_ID if _is_id(about) else NOT_FOUND_BY_NAME


def _why(outcome: Outcome, id_: int, fields: Fields, explanation: Explanation) -> tuple[AbsenceReason, str]:
    retrieval = outcome.retrieval
    if any(hit.id == id_ for hit in outcome.hits):
        return AbsenceReason.RETURNED, f"it is returned, at place {explanation.place}"
    if left_out := _left_out(outcome, id_, fields):
        return left_out
    if explanation.place:
        return _behind(outcome, explanation.place)
    if retrieval.strategy is Strategy.HIERARCHICAL and not explanation.matched_skills:
        return _not_routed(outcome, skills_of(fields), explanation)
    return AbsenceReason.NOT_A_CANDIDATE, _no_candidate(explanation)


def _left_out(outcome: Outcome, id_: int, fields: Fields) -> tuple[AbsenceReason, str] | None:
    """Return the filter or rule that leaves the item out."""
    query = outcome.context.query
    if query.kind is not None and fields["type"] != query.kind.value:
        return AbsenceReason.OTHER_KIND, f"it is a {fields['type']}; the search is limited to {query.kind.value}s"
    if never := outcome.context.excluded.get(id_):
        return AbsenceReason.EXCLUDED, f"a rule excludes it: {never.reason}; remove the rule to have it returned"
    if query.servers and fields["server"] not in query.servers:
        only = ", ".join(query.servers)
        return AbsenceReason.OTHER_SERVER, f"it is of {fields['server']}; the search is limited to {only}"
    return None


def _behind(outcome: Outcome, place: int) -> tuple[AbsenceReason, str]:
    query, score = outcome.context.query, outcome.ranked.items[place - 1].score
    beyond = f"it is at place {place}, beyond the limit of {query.limit}: raise `limit`"
    if reaches(score, query.threshold):
        return (AbsenceReason.BEYOND_LIMIT, beyond) if place > query.limit else _not_read(place)
    low = f"its score is {score:.3f}, below the threshold of {query.threshold}: lower `tool_threshold`"
    return AbsenceReason.BELOW_THRESHOLD, f"{low}; and {beyond}" if place > query.limit else low


def _not_read(place: int) -> tuple[AbsenceReason, str]:
    text = f"it belongs at place {place}, but its payload could not be read from the index: try again"
    return AbsenceReason.NOTHING_SEARCHED, text


def _not_routed(outcome: Outcome, skills: Sequence[str], explanation: Explanation) -> tuple[AbsenceReason, str]:
    also = _too_far(outcome, explanation)
    if not skills:
        text = "it is in no skill: `direct` and `hybrid` search it too; or assign it one"
        return AbsenceReason.NO_SKILL, text + also
    routed = ", ".join(outcome.retrieval.skill_ids_used or ())
    text = (
        f"it is in {', '.join(skills)}; the search was routed to {routed}: "
        "lower `skill_threshold`, raise `skill_limit`, or use `hybrid`"
    )
    return AbsenceReason.SKILLS_NOT_MATCHED, text + also


def _too_far(outcome: Outcome, explanation: Explanation) -> str:
    """Return the hint for an item that would still be below the threshold."""
    threshold, similarity = outcome.context.query.threshold, explanation.similarity
    if similarity is None or similarity >= threshold:
        return ""
    return f"; its similarity is {similarity:.3f}, below the threshold of {threshold}: lower `tool_threshold`, too"


def _no_candidate(explanation: Explanation) -> str:
    if explanation.similarity is None and explanation.word_score is None:
        return "it shares no word with the query, and no vectors were compared"
    return f"{CANDIDATES_PER_RETRIEVER} items or more rank higher in every retriever that ran: rephrase the query"


def _final_score(outcome: Outcome, explanation: Explanation) -> float | None:
    if not explanation.place:
        return None
    return min(1.0, max(0.0, outcome.ranked.items[explanation.place - 1].score))


def _name(fields: Fields) -> str:
    return tool_id(str(fields["server"]), str(fields["name"]))
