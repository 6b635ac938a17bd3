"""Says of what was returned how it came to its place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolscript.model.index import Candidate, Candidates
from toolscript.model.models import Vector
from toolscript.model.results import Explanation, ToolHit
from toolscript.search.asked import Asked
from toolscript.search.item_stage import Searched, Verdict


@dataclass(frozen=True)
class Outcome:
    """What a search came to."""

    asked: Asked
    vectors: Sequence[Vector] | None
    searched: Searched
    verdict: Verdict
    hits: tuple[ToolHit, ...]

    def explained_hits(self) -> tuple[ToolHit, ...]:
        return tuple(replace(hit, explanation=self.explanation(hit.id, hit.skill_ids)) for hit in self.hits)

    def explanation(self, id_: int, skill_ids: Sequence[str]) -> Explanation | None:
        """None for an item that is no candidate."""
        place = next((at for at, one in enumerate(self.verdict.scored, 1) if one.id == id_), None)
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
            similarity=_score((one.dense for one in said), id_),
            word_score=_score((one.words for one in said), id_),
            matched_skills=tuple(skill for skill in skill_ids if skill in routed),
        )

    def _wholes(self) -> list[Candidates]:
        """What the arms said of the whole request, wherever they looked."""
        retrieved = self.searched.retrieved
        return [found[0] for found in (retrieved.direct, retrieved.routed) if found]


def _score(arms: Iterator[Sequence[Candidate] | None], id_: int) -> float | None:
    return next((hit.score for arm in arms for hit in arm or () if hit.id == id_), None)
