"""The engine of the rules: the risk of a tool, and which rule decides about a call."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import Forbidden
from toolscript.core.items import Item, ItemKind, tool_id
from toolscript.gateway.rules import Basis, CallRules, Effect, Risk, Rule, claimed_risk, require_allowed

pytestmark = pytest.mark.requirement("TR-003")

READ = {"readOnlyHint": True}
WRITE = {"readOnlyHint": False, "destructiveHint": False}


def tool(annotations: Mapping[str, object] | None = None, name: str = "do_it", server: str = "files") -> Item:
    return Item(tool_id(server, name), ItemKind.TOOL, server, name, annotations=annotations)


def unapproved(_item: Item) -> bool:
    return False


@pytest.mark.parametrize(
    ("annotations", "level", "basis", "shown"),
    [
        (None, Risk.DESTRUCTIVE, Basis.NO_CLAIM, "destructive: it claims nothing"),
        ({}, Risk.DESTRUCTIVE, Basis.NO_CLAIM, "destructive: it claims nothing"),
        ({"title": "Reads"}, Risk.DESTRUCTIVE, Basis.NO_CLAIM, "destructive: it claims nothing"),
        ({"readOnlyHint": False}, Risk.DESTRUCTIVE, Basis.NO_CLAIM, "destructive: it claims nothing"),
        (READ, Risk.READ, Basis.CLAIM, "claims read-only"),
        ({**READ, "destructiveHint": False}, Risk.READ, Basis.CLAIM, "claims read-only"),
        (WRITE, Risk.WRITE, Basis.CLAIM, "claims non-destructive"),
        ({"destructiveHint": False}, Risk.WRITE, Basis.CLAIM, "claims non-destructive"),
        ({"destructiveHint": True}, Risk.DESTRUCTIVE, Basis.CLAIM, "claims destructive"),
        # It contradicts itself: the worse claim counts.
        ({**READ, "destructiveHint": True}, Risk.DESTRUCTIVE, Basis.CLAIM, "claims destructive"),
        # Only `true` and `false` are claims.
        ({"readOnlyHint": "true"}, Risk.DESTRUCTIVE, Basis.NO_CLAIM, "destructive: it claims nothing"),
        (
            {"readOnlyHint": 1, "destructiveHint": 0},
            Risk.DESTRUCTIVE,
            Basis.NO_CLAIM,
            "destructive: it claims nothing",
        ),
    ],
)
def test_annotations_are_claims(
    annotations: Mapping[str, object] | None, level: Risk, basis: Basis, shown: str
) -> None:
    risk = claimed_risk(annotations)
    assert (risk.level, risk.basis, risk.shown) == (level, basis, shown)


@pytest.mark.parametrize("annotations", [READ, WRITE])
def test_a_claim_of_a_definition_that_is_not_approved_does_not_count(annotations: Mapping[str, object]) -> None:
    risk = CallRules(is_approved=unapproved).risk(tool(annotations))
    assert (risk.level, risk.basis) == (Risk.DESTRUCTIVE, Basis.UNAPPROVED)


def test_a_server_that_calls_its_delete_tool_read_only_is_believed_no_longer_once_it_has_changed() -> None:
    ask_to_destroy = Rule(risk=Risk.DESTRUCTIVE, do=Effect.ASK)
    approved = {"fingerprint of the approval"}
    rules = CallRules([ask_to_destroy], is_approved=lambda item: item.description in approved)
    before = Item("k", ItemKind.TOOL, "files", "delete_all", "fingerprint of the approval", annotations=READ)
    assert rules.decide(before, "cursor").effect is Effect.ALLOW
    assert rules.risk(before).shown == "claims read-only"
    after = Item("k", ItemKind.TOOL, "files", "delete_all", "another", annotations=READ)
    assert rules.decide(after, "cursor").effect is Effect.ASK
    assert rules.risk(after).shown == "destructive: its definition is not approved"


def test_what_a_person_states_beats_every_claim_and_approval() -> None:
    stated = [Rule("files__do_it", states=Risk.WRITE), Rule("files__*", states=Risk.READ)]
    for annotations in (None, READ, {"destructiveHint": True}):
        risk = CallRules(stated, is_approved=unapproved).risk(tool(annotations))
        assert (risk.level, risk.basis, risk.shown) == (Risk.WRITE, Basis.RULE, "write, as a rule says")


def test_without_a_rule_every_call_is_made() -> None:
    decision = CallRules().decide(tool(), "cursor")
    assert (decision.effect, decision.rule, decision.reason) == (Effect.ALLOW, None, "no rule fits")
    assert CallRules().is_empty
    assert CallRules([Rule("files__*", states=Risk.READ)]).is_empty
    assert not CallRules(of_project=[Rule(do=Effect.DENY)]).is_empty


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("files__*", True),
        ("files__do_it", True),
        ("*__do_*", True),
        ("file__*", False),
        ("files__DO_IT", False),
        ("do_it", False),
        ("files__do", False),
    ],
)
def test_a_pattern_of_tools_is_about_whole_names(pattern: str, *, fits: bool) -> None:
    effect = CallRules([Rule(pattern, do=Effect.DENY)]).decide(tool(), "cursor").effect
    assert (effect is Effect.DENY) == fits


@pytest.mark.parametrize("client", ["Cursor", "cursor", "CURSOR"])
def test_the_name_of_a_client_has_no_case(client: str) -> None:
    rules = CallRules([Rule(client="cursor*", do=Effect.DENY)])
    assert rules.decide(tool(), client).effect is Effect.DENY
    assert rules.decide(tool(), "claude-code").effect is Effect.ALLOW


def test_a_project_makes_calls_stricter_and_never_laxer() -> None:
    deny_reading = [Rule(risk=Risk.READ, do=Effect.DENY), Rule(risk=Risk.DESTRUCTIVE, do=Effect.ALLOW)]
    allows_all = [Rule(do=Effect.ALLOW), Rule(states=Risk.READ)]
    assert CallRules(deny_reading, allows_all).decide(tool(READ), "cursor").effect is Effect.DENY
    assert CallRules([Rule(do=Effect.ASK)], allows_all).decide(tool(), "cursor").effect is Effect.ASK
    # A project that raises a risk leads past no rule about the lower one.
    raises = [Rule(states=Risk.DESTRUCTIVE)]
    assert CallRules(deny_reading, raises).decide(tool(READ), "cursor").effect is Effect.DENY
    assert CallRules([], [*raises, Rule(risk=Risk.DESTRUCTIVE, do=Effect.ASK)]).decide(
        tool(READ), "cursor"
    ).effect is (Effect.ASK)


deciding = st.builds(
    Rule,
    tools=st.sampled_from(["*", "files__*", "other__*", "files__do_it"]),
    risk=st.sampled_from([None, *Risk]),
    client=st.sampled_from(["*", "cursor", "claude*"]),
    do=st.sampled_from([*Effect]),
)
stating = st.builds(
    Rule, tools=st.sampled_from(["*", "files__*", "other__do_it"]), states=st.sampled_from([*Risk])
)
lists_of_rules = st.lists(st.one_of(deciding, stating), max_size=5)


@given(
    own=lists_of_rules,
    of_project=lists_of_rules,
    annotations=st.sampled_from([None, READ, WRITE, {"destructiveHint": True}]),
    client=st.sampled_from(["cursor", "claude-code", "cli"]),
)
def test_whatever_the_rules_of_a_project_are_nothing_becomes_laxer(
    own: list[Rule], of_project: list[Rule], annotations: Mapping[str, object] | None, client: str
) -> None:
    item, effects = tool(annotations), [*Effect]
    alone, both = CallRules(own).decide(item, client), CallRules(own, of_project).decide(item, client)
    assert effects.index(both.effect) >= effects.index(alone.effect)
    assert not alone.risk.exceeds(both.risk.level)


def test_a_refusal_names_the_rule_and_says_what_a_person_can_do() -> None:
    rules = CallRules([Rule(do=Effect.ASK, place="rule 1 of ~/.toolscript.json")])
    with pytest.raises(Forbidden) as refused:
        require_allowed(rules.decide(tool(), "cursor"), tool(), confirmed=False)
    assert refused.value.message == (
        "a person must allow this call of files__do_it (destructive: it claims nothing), "
        "says rule 1 of ~/.toolscript.json"
    )
    assert refused.value.hint == (
        "ask the person to allow it by a rule, or to make the call in a terminal with `toolscript call`"
    )
    require_allowed(rules.decide(tool(), "cursor"), tool(), confirmed=True)


def test_nobody_can_confirm_what_a_rule_denies() -> None:
    with pytest.raises(Forbidden, match="denies"):
        require_allowed(CallRules([Rule(do=Effect.DENY)]).decide(tool(), "cli"), tool(), confirmed=True)


@pytest.mark.parametrize(
    ("annotations", "limit", "is_made"),
    [
        (READ, Risk.READ, True),
        (WRITE, Risk.READ, False),
        (WRITE, Risk.WRITE, True),
        (None, Risk.WRITE, False),
        (None, Risk.DESTRUCTIVE, True),
    ],
)
def test_a_call_can_limit_its_own_risk(
    annotations: Mapping[str, object] | None, limit: Risk, *, is_made: bool
) -> None:
    item = tool(annotations)
    decision = CallRules().decide(item, "cursor")
    if is_made:
        require_allowed(decision, item, confirmed=False, limit=limit)
    else:
        with pytest.raises(Forbidden, match=f"the limit of this call is {limit}"):
            require_allowed(decision, item, confirmed=True, limit=limit)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("my[1]__*", "my[1]__x", True),
        ("my[1]__*", "my1__x", False),
        ("a__read?", "a__read?", True),
        ("a__read?", "a__reads", False),
        ("a__[!b]*", "a__[!b]c", True),
        ("*", "a\nb", True),
    ],
)
def test_only_the_star_stands_for_something_else(pattern: str, name: str, fits: bool) -> None:
    server, _, tool = name.partition("__")
    assert Rule(pattern, do=Effect.DENY).is_about(Item(name, ItemKind.TOOL, server, tool)) is fits
