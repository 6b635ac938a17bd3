"""Searches routed by skills, on doubles: which skills match, which items are searched, and what is reported."""

import logging
from dataclasses import dataclass, field

import pytest

from tests.unit.tools.search.builders import FailingIndex, Scene, WatchedIndex
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.model import IndexQuery, Point, Vector
from toolscript.core.retrieval.query import SearchType
from toolscript.core.taxonomy import skill_point_id
from toolscript.testing import HashEmbedder
from toolscript.tools.model.answer import MatchedBy, ToolAnswer
from toolscript.tools.model.query import SkillQuery, Strategy, ToolQuery
from toolscript.tools.search import ToolSearch
from toolscript.tools.skill_stage import MAX_SKILLS, covering


@dataclass
class Routed(Scene):
    """The scene with skills whose vectors are those of a text."""

    texts: dict[str, str] = field(default_factory=lambda: {"files": "file", "reading": "read", "mail": "letter"})
    inactive: frozenset[str] = frozenset()

    async def search(self, query: ToolQuery) -> ToolAnswer:
        return await (await self.opened()).search(query)

    async def opened(self) -> ToolSearch:
        await self.fill()
        for skill, text in self.texts.items():
            vector = await HashEmbedder().embed_query(text)
            await self.skills.put([_skill(skill, vector, is_active=skill not in self.inactive)])
        return self.tools


def _skill(skill: str, vector: Vector, *, is_active: bool) -> Point:
    fields = {"id": skill, "name": skill.title(), "description": f"About {skill}", "tool_count": 1}
    return Point(skill_point_id(skill), 1, vector, {}, fields | {"is_active": is_active})


def query(text: str = "read a file", **more: object) -> ToolQuery:
    default = {"threshold": 0.0, "limit": 100, "skill_threshold": 0.4}
    return ToolQuery(text, **default | more)  # type: ignore[arg-type]


def names(answer: ToolAnswer) -> set[str]:
    return {hit.name for hit in answer.hits}


@pytest.mark.requirement("BR-001", "BR-003")
async def test_only_items_of_matched_skills_are_found() -> None:
    answer = await Routed().search(query())
    assert answer.strategy_used is Strategy.HIERARCHICAL
    assert answer.skill_ids_used is not None
    assert names(answer) == {"read_file", "write_file"}
    assert all(set(hit.skill_ids) & set(answer.skill_ids_used) for hit in answer.hits)


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("strategy", list(Strategy))
async def test_every_strategy_embeds_a_query_once(strategy: Strategy) -> None:
    scene = Routed()
    await scene.search(query(strategy=strategy))
    assert scene.embedder.queries_embedded == 1


@pytest.mark.requirement("BR-002")
async def test_skills_by_vector_come_first_best_first_and_words_add_what_is_missing() -> None:
    answer = await Routed().search(query("letter file", skill_limit=1))
    assert [skill.matched_by for skill in answer.skills] == [MatchedBy.VECTOR, MatchedBy.WORDS]
    assert {skill.id for skill in answer.skills} == {"mail", "files"}
    assert all(skill.score is not None and 0 <= skill.score <= 1 for skill in answer.skills)


@pytest.mark.requirement("BR-002")
async def test_threshold_and_limit_apply_to_vector_matches_only() -> None:
    answer = await Routed().search(query("file file letter", skill_threshold=0.9))
    assert [(skill.id, skill.matched_by) for skill in answer.skills] == [
        ("files", MatchedBy.VECTOR),
        ("mail", MatchedBy.WORDS),
    ]
    assert (answer.skills[1].score or 0.0) < 0.9


@pytest.mark.requirement("BR-006")
@pytest.mark.parametrize(
    ("search_type", "threshold", "routed"),
    [(SearchType.HYBRID, 1.0, False), (SearchType.HYBRID, 0.8, True), (SearchType.KEYWORD, 1.0, True)],
)
async def test_words_route_to_skills_that_are_not_far_or_that_no_vector_can_judge(
    search_type: SearchType, threshold: float, routed: bool
) -> None:
    """The nearest skill has a cosine of .63, which is more than three quarters of .8."""
    answer = await Routed().search(query(skill_threshold=threshold, search_type=search_type))
    assert {skill.matched_by for skill in answer.skills} == ({MatchedBy.WORDS} if routed else set())
    assert answer.strategy_used is (Strategy.HIERARCHICAL if routed else Strategy.DIRECT)


@pytest.mark.requirement("BR-002")
async def test_an_inactive_skill_matches_neither_by_vector_nor_by_words() -> None:
    answer = await Routed(inactive=frozenset({"files"})).search(query("write file"))
    assert "files" not in {skill.id for skill in answer.skills}


@pytest.mark.requirement("BR-006")
@pytest.mark.parametrize("texts", [{}, {"unheard_of": "quite another thing"}])
async def test_when_no_skill_matches_all_items_are_searched_and_that_is_logged(
    texts: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await Routed(texts=texts).search(query(skill_threshold=1.0))
    direct = await Routed(texts=texts).search(query(strategy=Strategy.DIRECT))
    assert (answer.strategy_used, answer.skill_ids_used, answer.degraded) == (Strategy.DIRECT, None, ())
    assert [hit.id for hit in answer.hits] == [hit.id for hit in direct.hits]
    assert any("No skills matched" in line.message for line in caplog.records)


@pytest.mark.requirement("BR-006", "EC-009")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), None])
async def test_when_the_skill_stage_fails_all_items_are_searched(failure: Exception | None) -> None:
    scene = Routed(skills=FailingIndex(failure), texts={}, deadline_seconds=0.4)
    answer = await scene.search(query())
    assert answer.strategy_used is Strategy.DIRECT
    assert answer.degraded == ("skills",)
    assert "file_log" in names(answer)


@pytest.mark.requirement("BR-008")
async def test_a_direct_search_does_not_query_the_skills() -> None:
    scene = Routed()
    answer = await scene.search(query(strategy=Strategy.DIRECT))
    assert isinstance(scene.skills, WatchedIndex)
    assert scene.skills.asks == []
    assert (answer.skills, answer.skill_ids_used) == ((), None)


@pytest.mark.requirement("BR-010")
@pytest.mark.parametrize("search_type", list(SearchType))
async def test_hybrid_returns_all_that_direct_returns_in_its_order(search_type: SearchType) -> None:
    direct = await Routed().search(query(strategy=Strategy.DIRECT, search_type=search_type))
    hybrid = await Routed().search(query(strategy=Strategy.HYBRID, search_type=search_type))
    assert hybrid.strategy_used is Strategy.HYBRID
    assert [(hit.id, hit.score) for hit in hybrid.hits] == [(hit.id, hit.score) for hit in direct.hits]
    assert hybrid.skills


class _FailsFiltered(WatchedIndex):
    async def search(self, ask: IndexQuery):  # type: ignore[no-untyped-def]
        if any(condition.field == "skill_ids" for condition in ask.where):
            raise IndexUnavailable("down")
        return await super().search(ask)


@pytest.mark.requirement("BR-010")
async def test_when_one_route_of_hybrid_fails_the_other_answers() -> None:
    answer = await Routed(index=_FailsFiltered()).search(query(strategy=Strategy.HYBRID))
    assert answer.strategy_used is Strategy.DIRECT
    assert answer.degraded == ("index",)
    assert answer.hits


@pytest.mark.requirement("EC-003")
async def test_matched_skills_without_items_find_nothing() -> None:
    answer = await Routed(texts={"empty": "zebra"}).search(query("zebra"))
    assert answer.strategy_used is Strategy.HIERARCHICAL
    assert (answer.hits, answer.near_misses) == ((), ())


@pytest.mark.requirement("EC-008")
async def test_items_without_a_skill_are_left_out_and_counted() -> None:
    answer = await Routed().search(query())
    assert "file_log" not in names(answer)
    assert answer.unskilled_count == 2


async def test_without_an_embedding_skills_match_by_words_and_have_no_score() -> None:
    answer = await Routed().search(query(search_type=SearchType.KEYWORD))
    assert answer.strategy_used is Strategy.HIERARCHICAL
    assert {(skill.matched_by, skill.score) for skill in answer.skills} == {(MatchedBy.WORDS, None)}


async def test_the_skill_stage_alone_returns_at_most_limit_skills() -> None:
    answer = await (await Routed().opened()).skills(SkillQuery("read a file", limit=1, threshold=0.3))
    assert len(answer.skills) == 1


def test_items_are_covered_by_the_greedy_set_cover() -> None:
    items = [("a", "b"), ("b",), ("b", "c"), ("d",), ()]
    assert covering(items, already={}, maximum=8) == ["b", "d"]
    assert covering(items, already={"b": 1}, maximum=8) == ["d"]
    assert covering(items, already={}, maximum=1) == ["b"]


def test_on_a_tie_the_skill_of_the_better_item_comes_first() -> None:
    assert covering([("z",), ("a",)], already={}, maximum=MAX_SKILLS) == ["z", "a"]
