"""Broad conditions are checked on what comes back, narrow ones are sent along."""

from toolscript.adapters.qdrant.dense_plan import DensePlanner, Found
from toolscript.model.index import Candidate, Condition

ACTIVE, TOOL = Condition("is_active", (True,)), Condition("type", ("tool",))
SKILLS = Condition("skill_ids", ("a", "b"))


def planner() -> DensePlanner:
    return DensePlanner(frozenset({ACTIVE, TOOL}))


def candidates(active: int, inactive: int) -> list[Found]:
    return [(Candidate(at, 1.0), {"is_active": at < active}) for at in range(active + inactive)]


def test_only_narrow_conditions_are_sent_and_more_is_asked_for() -> None:
    plan = planner().plan((ACTIVE, TOOL, SKILLS), 100)
    assert plan.sent == (SKILLS,)
    assert plan.checked == (ACTIVE, TOOL)
    assert plan.limit > 100


def test_a_rare_kind_is_sent_as_it_is() -> None:
    rare = Condition("type", ("prompt",))
    assert planner().plan((rare,), 100).sent == (rare,)
    assert planner().plan((rare,), 100).limit == 100


def test_what_does_not_pass_is_left_out_and_no_more_than_asked_for_is_returned() -> None:
    planning = planner()
    plan = planning.plan((ACTIVE,), 10)
    passed = planning.checked(plan, candidates(active=12, inactive=plan.limit - 12), 10)
    assert passed is not None
    assert [hit.id for hit in passed] == list(range(10))


def test_too_few_that_pass_means_asking_again_unless_there_are_no_more() -> None:
    planning = planner()
    plan = planning.plan((ACTIVE,), 10)
    assert planning.checked(plan, candidates(active=3, inactive=plan.limit - 3), 10) is None
    everything = planning.checked(plan, candidates(active=3, inactive=2), 10)
    assert everything is not None
    assert len(everything) == 3


def test_a_condition_that_turns_out_to_be_narrow_is_sent_from_then_on() -> None:
    planning = planner()
    sent = []
    for _ in range(60):
        plan = planning.plan((ACTIVE,), 10)
        sent.append(plan.sent)
        if plan.checked:
            planning.checked(plan, candidates(active=1, inactive=plan.limit - 1), 10)
    assert sent[0] == ()
    assert sent[-10:].count((ACTIVE,)) >= 5


def test_what_was_narrow_once_is_tried_again_after_a_while() -> None:
    planning = planner()
    for _ in range(40):
        plan = planning.plan((ACTIVE,), 10)
        planning.checked(plan, candidates(active=0, inactive=plan.limit), 10)
    assert any(planning.plan((ACTIVE,), 10).checked for _ in range(60))
