"""Requests and responses of tool search: one model each for HTTP, MCP and `--json`."""

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
    "`hybrid` combines dense and sparse (BM25) retrieval, `keyword` is sparse only; `semantic` is literal mode: "
    "skills and items by the cosine of the unchanged query only. Null: the setting of the service, else `hybrid`."
)
Confidence = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="Probability that this is the right item; null if `search_type` is `semantic` or `keyword`.",
    ),
]


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(
        description="What the tool should do, in plain words; 1 to 1,000 characters.",
        json_schema_extra=dict[str, Any](QUERY_TEXT),
    )
    item_type: ItemKind | None = Field(None, description="Only items of this kind.")
    limit: Count = Field(5, ge=1, le=MAX_LIMIT, description="Maximum number of items.")
    preset: Preset = Field(
        Preset.BALANCED,
        description="Sets both thresholds, of skill and tool: `precision` 0.7 and 0.6, `balanced` 0.4 and 0.3, "
        "`recall` 0.2 and 0.1.",
    )
    tool_threshold: Similarity | None = Field(
        None, description="Minimum similarity of an item; the preset's if null."
    )
    skill_limit: Count = Field(
        3,
        ge=1,
        le=MAX_SKILLS,
        description="Maximum number of skills matched by vector; those matched by words are added.",
    )
    skill_threshold: Similarity | None = Field(
        None, description="Minimum similarity of a skill matched by vector; the preset's if null."
    )
    include_schemas: StrictBool = Field(True, description="Load the schemas of the items returned.")
    strategy: Strategy = Field(
        Strategy.HIERARCHICAL,
        description="`hierarchical` searches the items of the skills that match, `direct` all items, "
        "`hybrid` both ways at once.",
    )
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE)
    explain: StrictBool = Field(False, description="Add an explanation of its place to every item.")
    why_not: str = Field(
        "",
        max_length=MAX_NAME,
        description="An item, by id or as `server__name`; `absence` explains why it was not returned.",
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
        ge=0, le=1, description="Similarity to the query; null when there was no vector to compare."
    )
    tool_count: int = Field(description="Number of items in the skill.")
    matched_by: MatchedBy = Field(
        description="`vector`: its centroid is near the query; `words`: some of its items share the query's words."
    )

    @classmethod
    def of(cls, skill: MatchedSkill) -> Self:
        return model_of(cls, skill, score=_rounded(skill.score))


class ExplanationModel(BaseModel):
    place: int = Field(description="Place among all candidates, from 1; 0 for an item that no retriever returned.")
    parts: dict[str, float] = Field(description="Contributions to the item's score; relative, no similarities.")
    similarity: float | None = Field(description="Cosine to the query; null if dense retrieval did not return it.")
    word_score: float | None = Field(description="BM25 score; null if sparse retrieval did not return it.")
    matched_skills: list[str] = Field(description="Those of its skills that the search was routed to.")

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
    score: float = Field(description="Similarity to the query, 0 to 1; thresholds apply to it.")
    confidence: Confidence
    skill_ids: list[str]
    primary_skill_id: str | None

    @classmethod
    def of(cls, hit: ToolHit) -> Self:
        return model_of(cls, hit, **_hit_fields(hit))


class EnrichedTool(ToolFound):
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    explanation: ExplanationModel | None = Field(description="Null unless `explain` is true.")

    @classmethod
    def of(cls, hit: ToolHit) -> Self:
        explanation = ExplanationModel.of(hit.explanation)
        return model_of(cls, hit, **_hit_fields(hit), **vars(hit.schemas), explanation=explanation)


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
    message: str = Field(description="The reason, and how to get the item returned.")
    id: str | None
    name: str = Field(description="The matching item, as `server__name`; empty when there is none.")
    others: list[str] = Field(description="Other items that may match.")
    score: float | None = Field(description="Its score, if it is a candidate.")
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
    strategy_used: Strategy = Field(
        description="The strategy that actually ran: without a matching skill a search is direct."
    )
    search_type_used: Literal["semantic", "keyword", "hybrid", "none"]
    skill_ids_used: list[str] | None = Field(description="The skills whose items were searched; null: all items.")
    stage1_skill_count: int
    stage2_candidate_count: int = Field(description="Items that reach the threshold, before the limit.")
    final_count: int
    unskilled_count: int | None = Field(
        description="Approximate number of items in no skill: only `direct` and `hybrid` find them. "
        "Null if the index did not answer."
    )
    query_embedding_time_ms: float
    skill_search_time_ms: float
    tool_search_time_ms: float
    ranking_time_ms: float = Field(description="The part of `tool_search_time_ms` spent on ranking.")
    schema_load_time_ms: float
    total_time_ms: float
    degraded: list[str]
    index: str = Field(description="Fingerprint of the index version, and so of the model, behind this response.")
    good_match: bool | None = Field(
        description="The verdict on the best item, whatever the threshold; false: the item is a guess. "
        "Null if `search_type` is `semantic` or `keyword`."
    )
    unmatched_words: list[str] = Field(description="Words of the query that none of the best candidates has.")
    near_misses: list[NearMiss] = Field(description="The best items below the threshold, when none reaches it.")

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
    absence: AbsenceModel | None = Field(description="The answer to `why_not`; null without it.")

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


def _hit_fields(hit: ToolHit) -> dict[str, Any]:
    """Return the fields that differ from those of the hit."""
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
