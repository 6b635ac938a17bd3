"""Rules in config files: reading, mistakes, files that they name, and edits that keep everything else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gateway.config.builders import write
from toolscript.core.errors import ConfigInvalid, Conflict, InvalidRequest, NotFound
from toolscript.core.retrieval.curation import MAX_RULES, Rule, RuleKind
from toolscript.gateway.config.curation import curation_of, rule_of, rule_to_json
from toolscript.gateway.config.jsonc import parse
from toolscript.gateway.config.read import Config, read_config
from toolscript.gateway.config.trust import TrustState
from toolscript.gateway.config.write import with_item, without_item
from toolscript.gateway.curation import add_rule, remove_rule, rule_file

pytestmark = pytest.mark.requirement("TS-001")

PROMOTE = {"kind": "promote", "tool": "github__create_issue", "words": "new ticket"}
SYNONYM = {"kind": "synonym", "words": "PR", "means": "pull request", "mutual": True}
NEVER = {"kind": "never", "tool": "shell__run", "words": "delete branch"}
RULES = [
    Rule(RuleKind.PROMOTE, "new ticket", "github__create_issue"),
    Rule(RuleKind.SYNONYM, "PR", means="pull request", mutual=True),
    Rule(RuleKind.NEVER, "delete branch", "shell__run"),
]
PATH = Path("config.json")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".toolscript.json"


def read(file: Path, curation: object) -> Config:
    return read_config([write(file, {"mcpServers": {}, "curation": curation})], {})


def rules_of(config: Config) -> list[Rule]:
    curation, problems = curation_of(config)
    assert (problems, config.problems) == ([], ())
    return [*curation.rules]


def problems_of(config: Config) -> list[str]:
    return [str(problem) for problem in (*config.problems, *curation_of(config)[1])]


def test_the_rules_of_a_file_are_read_and_written_alike(file: Path) -> None:
    assert rules_of(read(file, [PROMOTE, SYNONYM, NEVER])) == RULES
    assert [rule_to_json(rule) for rule in RULES] == [PROMOTE, SYNONYM, NEVER]


def test_a_file_of_rules_alone_is_no_file_without_servers(file: Path) -> None:
    assert rules_of(read_config([write(file, {"curation": [NEVER]})], {})) == RULES[2:]


def test_a_config_file_may_name_the_file_of_its_rules(file: Path) -> None:
    named = write(file.parent / "rules.json", f"// mine\n{json.dumps([PROMOTE, NEVER])}")
    config = read(file, "rules.json")
    assert rules_of(config) == [RULES[0], RULES[2]]
    assert config.named == (named,)


def test_a_named_file_that_is_missing_is_reported_and_still_watched(file: Path) -> None:
    config = read(file, "rules.json")
    assert config.named == (file.parent / "rules.json",)
    assert "rules.json: there is no such file" in problems_of(config)[0]


def test_a_named_file_that_is_no_json_is_refused_with_its_line(file: Path) -> None:
    write(file.parent / "rules.json", "[\n{")
    with pytest.raises(ConfigInvalid, match=r"rules\.json is not JSON: line 2"):
        read(file, "rules.json")


def test_the_rules_of_a_project_follow_those_of_the_user(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / name / "c.json", {"curation": [rule]}) for name, rule in (("a", NEVER), ("b", SYNONYM))
    ]
    assert rules_of(read_config(paths, {})) == [RULES[2], RULES[1]]


def test_a_file_that_is_not_trusted_has_no_rules(file: Path) -> None:
    write(file, {"curation": [NEVER]})
    config = read_config([file], {}, lambda _, __: TrustState.UNKNOWN)
    assert curation_of(config)[0].rules == ()


def test_a_trusted_project_file_cannot_name_a_file_that_nobody_trusted(file: Path) -> None:
    write(file.parent / "rules.json", [NEVER])
    text = write(file, {"curation": "rules.json"}).read_text("utf-8")

    def trust(_: Path, shown: str) -> TrustState:
        return TrustState.TRUSTED if shown == text else TrustState.CHANGED

    config = read_config([file], {}, trust)
    assert config.curation == ()
    assert "the curation of a project names a file; put the rules into it" in problems_of(config)[0]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("PR", "it is not an object"),
        ({**NEVER, "kind": "boost"}, "`kind` is not one of them; use one of promote, synonym, never"),
        ({**NEVER, "words": ["x"]}, "`words` is not text"),
        ({**SYNONYM, "mutual": "yes"}, "`mutual` is neither true nor false"),
        ({**NEVER, "words": "of the"}, "`words` of a rule has no word that tells requests apart"),
        ({**NEVER, "tool": "run"}, "'run' is not the name of a tool"),
        ({"kind": "never", "words": "x"}, "`tool` of a rule is missing"),
        ({"kind": "synonym", "words": "x"}, "`means` of a rule is blank"),
    ],
)
def test_a_wrong_rule_has_no_effect_and_is_reported_with_its_number(
    file: Path, rule: object, message: str
) -> None:
    config = read(file, [PROMOTE, rule, NEVER])
    assert [*curation_of(config)[0].rules] == [RULES[0], RULES[2]]
    (problem,) = problems_of(config)
    assert f"rule 2 of curation has no effect: {message}" in problem


def test_an_unknown_key_is_reported_and_the_rule_used(file: Path) -> None:
    config = read(file, [{**NEVER, "weight": 2}])
    assert [*curation_of(config)[0].rules] == [RULES[2]]
    assert (
        "'weight' in rule 1 of curation is not understood; take it out; known are kind" in problems_of(config)[0]
    )


def test_a_curation_that_is_no_list_is_reported(file: Path) -> None:
    assert "curation is not a list" in problems_of(read(file, {"promote": []}))[0]


def test_more_rules_than_the_maximum_are_reported_and_not_used(file: Path) -> None:
    config = read(file, [{**NEVER, "words": f"w{number}"} for number in range(MAX_RULES + 1)])
    assert len(curation_of(config)[0].rules) == MAX_RULES
    assert "curation has more than 1,000 rules" in problems_of(config)[0]


COMMENTED = """\
// mine
{
    "mcpServers": {"a": {"command": "x"}}, // the only one
    "curation": [
        // words of the team
        {"kind": "synonym", "words": "PR", "means": "pull request", "mutual": true}, // [1]
        {"kind": "never", "tool": "shell__run", "words": "delete branch"}  /* , */
    ],
}
"""


def test_an_added_rule_leaves_comments_and_all_else_as_it_was() -> None:
    after = with_item(COMMENTED, "curation", PROMOTE, PATH)
    assert after.replace(f",  /* , */\n        {json.dumps(PROMOTE)}\n", "  /* , */\n") == COMMENTED


@pytest.mark.parametrize("index", [0, 1])
def test_a_removed_rule_leaves_comments_and_all_else_as_it_was(index: int) -> None:
    after = without_item(COMMENTED, "curation", index, PATH)
    assert [comment for comment in ("// mine", "// the only", "// words", "// [1]") if comment not in after] == []
    assert parse(after, PATH).value == {
        "mcpServers": {"a": {"command": "x"}},
        "curation": [[NEVER], [SYNONYM]][index],
    }


ITEMS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a[]{},:"/*\\ \n'),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(alphabet='"],'), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(ITEMS, max_size=4), ITEMS, st.sampled_from([None, 1, "\t"]), st.booleans(), st.data())
def test_any_item_of_any_list_can_be_added_and_removed(
    items: list[object], item: object, indent: int | str | None, in_section: bool, data: st.DataObject
) -> None:
    section = "rules" if in_section else None
    text = json.dumps({"b": 1, "rules": items, "a": [2]} if in_section else items, indent=indent)
    added = with_item(text, section, item, PATH)
    value = parse(added, PATH).value
    assert (value["rules"] if in_section else value) == [*items, item]  # type: ignore[index]
    index = data.draw(st.integers(0, len(items)))
    remaining = parse(without_item(added, section, index, PATH), PATH).value
    expected = [*items, item]
    del expected[index]
    assert (remaining["rules"] if in_section else remaining) == expected  # type: ignore[index]


def test_commands_edit_the_file_that_has_the_rules(file: Path) -> None:
    flags = {"config": str(file)}
    write(file, {"mcpServers": {}})
    for rule in RULES:
        add_rule(flags, rule)
    assert rules_of(read_config([file], {})) == RULES
    assert remove_rule(flags, 2)[1] == RULES[1]
    assert [numbered.rule for numbered in rule_file(flags).read()[0]] == [RULES[0], RULES[2]]
    named = write(file.parent / "rules.json", "[]")
    write(file, {"curation": "rules.json"})
    assert add_rule(flags, RULES[0]).path == named
    assert rules_of(read_config([file], {})) == [RULES[0]]


def test_the_same_rule_twice_and_a_missing_number_are_refused(file: Path) -> None:
    flags = {"config": str(write(file, {}))}
    add_rule(flags, RULES[0])
    with pytest.raises(Conflict, match="this rule already"):
        add_rule(flags, RULES[0])
    with pytest.raises(NotFound, match="no rule 2"):
        remove_rule(flags, 2)


def test_a_full_file_takes_no_more_rules(file: Path) -> None:
    write(file, {"curation": [{**NEVER, "words": f"w{number}"} for number in range(MAX_RULES)]})
    with pytest.raises(InvalidRequest, match="more than 1,000 rules"):
        add_rule({"config": str(file)}, RULES[0])


def test_a_tool_may_have_the_prefix_of_a_client() -> None:
    assert rule_of({**NEVER, "tool": "mcp__toolscript__shell__run"}) == RULES[2]
