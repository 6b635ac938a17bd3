"""Broad conditions are checked on the results, narrow ones are sent as filters."""

import pytest

from toolscript.core.qdrant.dense_plan import DensePlan, DensePlanner, Sizes
from toolscript.core.retrieval.model import Candidate, Condition, Where

ACTIVE, TOOL = Condition("is_active", (True,)), Condition("type", ("tool",))
SKILLS = Condition("skill_ids", ("a", "b"))


UNKNOWN = Sizes()


class Planner(DensePlanner):
    def of(self, where: Where, limit: int, sizes: Sizes = UNKNOWN) -> DensePlan:
        return self.plan(where, limit, sizes)


def planner() -> Planner:
    return Planner(frozenset({ACTIVE, TOOL}))


def candidates(active: int, inactive: int) -> list[list[Candidate]]:
    return [[Candidate(number, 1.0, {"is_active": number < active}) for number in range(active + inactive)]]


def test_only_narrow_conditions_are_sent_with_a_larger_limit() -> None:
    plan = planner().of((ACTIVE, TOOL, SKILLS), 100)
    assert plan.sent == ((SKILLS,),)
    assert plan.checked == (ACTIVE, TOOL)
    assert plan.limit > 100


def test_a_rare_kind_is_sent_as_it_is() -> None:
    rare = Condition("type", ("prompt",))
    assert planner().of((rare,), 100).sent == ((rare,),)
    assert planner().of((rare,), 100).limit == 100


def test_hits_that_do_not_pass_are_dropped_and_the_limit_holds() -> None:
    planning = planner()
    plan = planning.of((ACTIVE,), 10)
    passed = planning.checked(plan, candidates(active=12, inactive=plan.limit - 12), 10)
    assert passed is not None
    assert [hit.id for hit in passed] == list(range(10))


def test_too_few_passing_hits_need_a_second_query_unless_there_are_no_more() -> None:
    planning = planner()
    plan = planning.of((ACTIVE,), 10)
    assert planning.checked(plan, candidates(active=3, inactive=plan.limit - 3), 10) is None
    everything = planning.checked(plan, candidates(active=3, inactive=2), 10)
    assert everything is not None
    assert len(everything) == 3


def test_a_condition_that_turns_out_to_be_narrow_is_sent_from_then_on() -> None:
    planning = planner()
    sent = []
    for _ in range(60):
        plan = planning.of((ACTIVE,), 10)
        sent.append(plan.sent)
        if plan.checked:
            planning.checked(plan, candidates(active=1, inactive=plan.limit - 1), 10)
    assert sent[0] == ((),)
    assert sent[-10:].count(((ACTIVE,),)) >= 5


def test_a_condition_that_was_narrow_is_tried_again_after_a_while() -> None:
    planning = planner()
    for _ in range(40):
        plan = planning.of((ACTIVE,), 10)
        planning.checked(plan, candidates(active=0, inactive=plan.limit), 10)
    assert any(planning.of((ACTIVE,), 10).checked for _ in range(60))


def skills(*sizes: int, points: int = 1_000_000, segments: int = 2) -> tuple[Condition, Sizes]:
    by_value: dict[str | int | bool, int] = {f"skill_{number}": size for number, size in enumerate(sizes)}
    everything = {"skill_ids": {**by_value, "another": points}}
    return Condition("skill_ids", tuple(by_value)), Sizes(points, segments, 10_000, everything)


def groups(plan: DensePlan) -> list[set[object]]:
    return [set(where[0].any_of) for where in plan.sent]


def test_small_values_are_queried_in_scanned_groups_and_large_ones_together() -> None:
    condition, sizes = skills(9_000, 7_000, 3_000, 50_000, 60_000)
    plan = planner().of((condition,), 100, sizes)
    assert groups(plan) == [{"skill_2", "skill_1"}, {"skill_0"}, {"skill_3", "skill_4"}]
    assert (plan.checked, plan.limit) == ((), 100)


def test_values_that_are_scanned_together_stay_together() -> None:
    condition, sizes = skills(3_000, 3_000, 3_000)
    assert planner().of((condition,), 100, sizes).sent == ((condition,),)


def test_more_segments_mean_less_in_each() -> None:
    condition, sizes = skills(9_000, 9_000, 9_000, 9_000, segments=8)
    assert planner().of((condition,), 100, sizes).sent == ((condition,),)


def test_other_conditions_go_along_with_every_group() -> None:
    rare = Condition("type", ("prompt",))
    condition, sizes = skills(15_000, 15_000)
    plan = planner().of((rare, condition), 100, sizes)
    assert [where[0] for where in plan.sent] == [rare, rare]
    assert [where[1].any_of for where in plan.sent] == [("skill_0",), ("skill_1",)]


@pytest.mark.parametrize(("points", "is_checked"), [(1_000_000, True), (10_000, False)])
def test_values_that_most_points_have_are_checked_after_a_graph_search(points: int, is_checked: bool) -> None:
    condition = Condition("skill_ids", ("most", "some"))
    sizes = Sizes(points, 2, 10_000, {"skill_ids": {"most": points * 7 // 10, "some": points // 10}})
    plan = planner().of((condition,), 100, sizes)
    assert bool(plan.checked) is is_checked
    assert (plan.limit > 100) is is_checked


def test_a_point_of_two_groups_is_one_candidate_and_the_best_come_first() -> None:
    plan = DensePlan((), (), 3)
    first, second = (
        [Candidate(1, 0.9), Candidate(2, 0.2)],
        [Candidate(3, 0.5), Candidate(1, 0.9), Candidate(4, 0.1)],
    )
    best = planner().checked(plan, [first, second], 3)
    assert best is not None
    assert [hit.id for hit in best] == [1, 3, 2]


def test_a_list_passes_a_check_when_one_of_its_values_does() -> None:
    plan = DensePlan(((),), (SKILLS,), 2)
    results = [[Candidate(1, 0.9, {"skill_ids": ["x", "a"]}), Candidate(2, 0.8, {"skill_ids": ["x"]})]]
    assert planner().checked(DensePlan(((),), (SKILLS,), 5), results, 2) == [results[0][0]]
    assert planner().checked(plan, results, 2) is None


def test_a_group_with_too_few_passing_hits_needs_a_second_query_whatever_the_others_returned() -> None:
    plan = DensePlan(((), ()), (ACTIVE,), 10)
    poor = [Candidate(number, 0.9, {"is_active": number < 1}) for number in range(10)]
    rich = [Candidate(100 + number, 0.5, {"is_active": True}) for number in range(9)]
    assert planner().checked(plan, [poor, rich], 5) is None
    assert planner().checked(plan, [poor[:9], rich], 5) is not None
