"""Requests and answers of tool search: one model each for HTTP, MCP and `--json`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel, StrictBool

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.web.fields import QUERY_TEXT, Count, model_of
from toolscript.tools.model.answer import (
    AbsenceReason,
    Explanation,
    MatchedBy,
    MatchedSkill,
    ToolAnswer,
    ToolHit,
    WhyNotAnswer,
)
from toolscript.tools.model.query import MAX_NAME, MAX_SKILLS, PRESETS, Preset, Strategy, ToolQuery

Similarity = Annotated[float, Field(ge=0, le=1, strict=True)]


SEARCH_TYPE = (
    "`hybrid` ranks by meaning and words, `keyword` by words alone; `semantic` is literal mode: skills and items "
    "by the cosine of the query as it is, and nothing else. Null: what the installation has set, else `hybrid`."
)
Confidence = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="How likely this is the right item; null where one arm alone was asked for.",
    ),
]


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(
        description="What the tool should do, in plain words; 1 to 1,000 characters.",
        json_schema_extra=dict[str, Any](QUERY_TEXT),
    )
    item_type: ItemKind | None = Field(None, description="Only items of this kind.")
    limit: Count = Field(5, ge=1, le=MAX_LIMIT, description="Most items returned.")
    preset: Preset = Field(
        Preset.BALANCED,
        description="Both thresholds, of skill and of tool: `precision` 0.7 and 0.6, `balanced` 0.4 and 0.3, "
        "`recall` 0.2 and 0.1.",
    )
    tool_threshold: Similarity | None = Field(
        None, description="Least similarity of an item; the preset's if null."
    )
    skill_limit: Count = Field(
        3, ge=1, le=MAX_SKILLS, description="Most skills matched by vector; those matched by words come on top."
    )
    skill_threshold: Similarity | None = Field(
        None, description="Least similarity of a skill matched by vector; the preset's if null."
    )
    include_schemas: StrictBool = Field(True, description="Load the schemas of the items returned.")
    strategy: Strategy = Field(
        Strategy.HIERARCHICAL,
        description="`hierarchical` searches the items of the skills that match, `direct` all items, "
        "`hybrid` both ways at once.",
    )
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE)
    explain: StrictBool = Field(False, description="Have every item say how it came to its place.")
    why_not: str = Field(
        "",
        max_length=MAX_NAME,
        description="An item, by id or as `server__name`: `absence` says why it was not returned.",
    )

    def as_query(self, default: SearchType) -> ToolQuery:
        fallback = PRESETS[self.preset]
        return ToolQuery(
            text=self.query,
            kind=self.item_type,
            limit=self.limit,
            threshold=fallback.tool if self.tool_threshold is None else self.tool_threshold,
            search_type=resolve_search_type(self.search_type, default),
            strategy=self.strategy,
            include_schemas=self.include_schemas,
            skill_limit=self.skill_limit,
            skill_threshold=fallback.skill if self.skill_threshold is None else self.skill_threshold,
            explain=self.explain,
            about=self.why_not,
        )


class SkillMatch(BaseModel):
    id: str
    name: str
    description: str
    score: float | None = Field(
        ge=0, le=1, description="Similarity to the query; null where there was no vector to compare."
    )
    tool_count: int = Field(description="How many items are in it.")
    matched_by: MatchedBy = Field(
        description="`vector`: its items are near the query; `words`: some of its items share the query's words."
    )

    @classmethod
    def of(cls, skill: MatchedSkill) -> Self:
        return model_of(cls, skill, score=_rounded(skill.score))


class ExplanationModel(BaseModel):
    place: int = Field(description="Place among all candidates, from 1; 0 for an item that no arm named.")
    parts: dict[str, float] = Field(description="What gave the item its standing; relative, no similarities.")
    similarity: float | None = Field(description="Cosine to the query; null where the dense arm did not name it.")
    word_score: float | None = Field(description="What its words gave; null where the word arm did not name it.")
    matched_skills: list[str] = Field(description="Those of its skills that the search was routed by.")

    @classmethod
    def of(cls, explanation: Explanation | None) -> Self | None:
        if explanation is None:
            return None
        similarity, word_score = _rounded(explanation.similarity), _rounded(explanation.word_score)
        return model_of(cls, explanation, similarity=similarity, word_score=word_score)


class ToolFound(BaseModel):
    id: str
    db_id: int
    type: ItemKind
    server: str
    name: str
    description: str
    score: float = Field(description="How similar it is to the query, 0 to 1; what thresholds are about.")
    confidence: Confidence
    skill_ids: list[str]
    primary_skill_id: str | None

    @classmethod
    def of(cls, hit: ToolHit) -> Self:
        return model_of(cls, hit, **_found(hit))


class EnrichedTool(ToolFound):
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    explanation: ExplanationModel | None = Field(description="Null unless `explain` was asked for.")

    @classmethod
    def of(cls, hit: ToolHit) -> Self:
        explanation = ExplanationModel.of(hit.explanation)
        return model_of(cls, hit, **_found(hit), **vars(hit.schemas), explanation=explanation)


class NearMiss(BaseModel):
    id: str
    type: ItemKind
    server: str
    name: str
    description: str
    score: float
    confidence: Confidence

    @classmethod
    def of(cls, hit: ToolHit) -> Self:
        return model_of(cls, ToolFound.of(hit))


class AbsenceModel(BaseModel):
    about: str
    reason: AbsenceReason
    message: str = Field(description="Why, and what would bring it back.")
    id: str | None
    name: str = Field(description="The item that was meant, as `server__name`; empty when there is none.")
    others: list[str] = Field(description="Items that may have been meant instead.")
    score: float | None = Field(description="Its score, where it is a candidate.")
    skill_ids: list[str]
    explanation: ExplanationModel | None

    @classmethod
    def of(cls, absence: WhyNotAnswer) -> Self:
        return model_of(
            cls,
            absence,
            id=None if absence.id is None else str(absence.id),
            score=_rounded(absence.score),
            explanation=ExplanationModel.of(absence.explanation),
        )


class Metadata(BaseModel):
    strategy_used: Strategy = Field(description="What really ran: without a matching skill a search is direct.")
    search_type_used: Literal["semantic", "keyword", "hybrid", "none"]
    skill_ids_used: list[str] | None = Field(description="The skills whose items were searched; null: all items.")
    stage1_skill_count: int
    stage2_candidate_count: int = Field(description="Items that reach the threshold, before the limit.")
    final_count: int
    unskilled_count: int | None = Field(
        description="About how many items are in no skill: `direct` and `hybrid` alone can find those. "
        "Null where the index did not answer."
    )
    query_embedding_time_ms: float
    skill_search_time_ms: float
    tool_search_time_ms: float
    ranking_time_ms: float = Field(description="The ranking's part of `tool_search_time_ms`.")
    schema_load_time_ms: float
    total_time_ms: float
    degraded: list[str]
    index: str = Field(description="Fingerprint of the one index, and so of the one model, behind this answer.")
    good_match: bool | None = Field(
        description="The verdict on the best item, whatever the threshold: false, it is a guess. "
        "Null where one arm alone was asked for."
    )
    unmatched_words: list[str] = Field(description="Words of the query that none of the best candidates has.")
    near_misses: list[NearMiss] = Field(description="The best below the threshold, when nothing reaches it.")

    @classmethod
    def of(cls, answer: ToolAnswer) -> Self:
        timings = answer.timings
        return model_of(
            cls,
            answer,
            stage1_skill_count=len(answer.skills),
            stage2_candidate_count=answer.candidate_count,
            final_count=len(answer.hits),
            query_embedding_time_ms=round(timings.query_embedding, 3),
            skill_search_time_ms=round(timings.skill_search, 3),
            tool_search_time_ms=round(timings.tool_search, 3),
            ranking_time_ms=round(timings.ranking, 3),
            schema_load_time_ms=round(timings.schema_load, 3),
            total_time_ms=round(timings.total, 3),
            unmatched_words=list(answer.unmatched),
            near_misses=[NearMiss.of(hit) for hit in answer.near_misses],
        )


class SearchResponse(BaseModel):
    query: str
    tools: list[EnrichedTool]
    matched_skills: list[SkillMatch]
    metadata: Metadata
    absence: AbsenceModel | None = Field(description="What became of `why_not`; null when nobody asked.")

    @classmethod
    def of(cls, answer: ToolAnswer) -> Self:
        return cls.model_construct(
            query=answer.query,
            tools=[EnrichedTool.of(hit) for hit in answer.hits],
            matched_skills=[SkillMatch.of(skill) for skill in answer.skills],
            metadata=Metadata.of(answer),
            absence=None if answer.absence is None else AbsenceModel.of(answer.absence),
        )


class ToolsFound(RootModel[list[ToolFound]]):
    @classmethod
    def of(cls, answer: ToolAnswer) -> Self:
        return cls.model_construct([ToolFound.of(hit) for hit in answer.hits])


class SkillsFound(RootModel[list[SkillMatch]]):
    @classmethod
    def of(cls, skills: tuple[MatchedSkill, ...]) -> Self:
        return cls.model_construct([SkillMatch.of(skill) for skill in skills])


def _found(hit: ToolHit) -> dict[str, Any]:
    """The fields that are put differently than in the hit."""
    confidence = None if hit.confidence is None else round(hit.confidence, 4)
    return {
        "id": str(hit.id),
        "db_id": hit.id,
        "type": hit.kind,
        "score": round(hit.score, 6),
        "confidence": confidence,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
