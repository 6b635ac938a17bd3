"""The `rules` of config files: how they are read, whose they are, and what becomes of a mistake."""

import json
from pathlib import Path

import pytest

from toolscript.core.items import Item, ItemKind
from toolscript.gateway.config.read import Config, ConfigPlace
from toolscript.gateway.config.rules import call_rules_of, rule_of
from toolscript.gateway.config.trust import TrustStore
from toolscript.gateway.rules import CallRules, Effect, Risk

pytestmark = pytest.mark.requirement("TR-003")

DELETE = Item("k", ItemKind.TOOL, "files", "delete", annotations={"readOnlyHint": True})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def write(file: Path, rules: object, **more: object) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"rules": rules, **more}), "utf-8")
    return file


def read(*files: Path, named: str = "") -> Config:
    return ConfigPlace(named, files=files).read({})


def rules_of(config: Config) -> CallRules:
    own, of_project, _ = call_rules_of(config)
    return CallRules(own, of_project)


def effect(config: Config) -> Effect:
    return rules_of(config).decide(DELETE, "cursor").effect


def test_a_rule_has_what_is_written() -> None:
    rule = rule_of({"tools": "a__*", "risk": "write", "client": "cur*", "do": "ask"}, "rule 1 of a file")
    written = (rule.tools, rule.risk, rule.client, rule.do, rule.states, rule.place)
    assert written == ("a__*", Risk.WRITE, "cur*", Effect.ASK, None, "rule 1 of a file")
    assert rule_of({"tools": "a__b", "is": "read"}).states is Risk.READ


@pytest.mark.parametrize(
    ("written", "message", "fix"),
    [
        ("deny", "it is not an object", "write {"),
        ({"tools": "a__b"}, "it has neither `do` nor `is`, or both", "`do` decides calls"),
        ({"tools": "a__b", "do": "ask", "is": "read"}, "it has neither `do` nor `is`, or both", "`do` decides"),
        ({"do": "dney"}, "`do` is not one of them", "use one of allow, ask, deny"),
        ({"do": None}, "`do` is not one of them", "use one of allow, ask, deny"),
        ({"risk": "danger", "do": "ask"}, "`risk` is not one of them", "use one of read, write, destructive"),
        ({"tools": ["a__b"], "do": "ask"}, "`tools` is not text", "write a name or a pattern in quotes: tools"),
        ({"tools": "", "do": "ask"}, "`tools` is not text", "write a name or a pattern in quotes: tools"),
        ({"tools": "github", "do": "ask"}, "`tools` names no tool", '"github__*" for all tools of a server'),
        ({"client": 7, "do": "ask"}, "`client` is not text", "write a name or a pattern in quotes: client"),
        ({"clients": "x", "do": "ask"}, "'clients' is not understood", "known are tools, risk, client, do, is"),
        ({"is": "read"}, "`is` needs `tools`, and nothing else", 'write {"tools": "notes__add", "is": "write"}'),
        ({"tools": "a__b", "client": "x", "is": "read"}, "`is` needs `tools`, and nothing else", "write {"),
    ],
)
def test_a_rule_with_a_mistake_denies_and_says_how_to_correct_it(
    home: Path, written: object, message: str, fix: str
) -> None:
    own = write(home / ".toolscript.json", [{"tools": "other__*", "do": "allow"}, written, {"do": "allow"}])
    rules, _, problems = call_rules_of(read(own))
    [problem] = problems
    assert f"rule 2 of rules denies what it is about, because of a mistake: {message}" in problem.message
    assert fix in problem.fix
    assert [(rule.do, bool(rule.problem)) for rule in rules] == [
        (Effect.ALLOW, False),
        (Effect.DENY, True),
        (Effect.ALLOW, False),
    ]


def test_a_mistake_denies_no_more_than_the_rule_is_about(home: Path) -> None:
    own = write(home / ".toolscript.json", [{"tools": "github__*", "client": "cursor", "do": "alow"}])
    assert effect(read(own)) is Effect.ALLOW
    own = write(home / ".toolscript.json", [{"tools": "files__*", "client": "zed", "do": "alow"}])
    assert effect(read(own)) is Effect.ALLOW
    own = write(home / ".toolscript.json", [{"tools": "files__*", "client": "cursor", "do": "alow"}])
    assert effect(read(own)) is Effect.DENY


@pytest.mark.parametrize("rules", [{}, "deny", [{"do": "allow"}] * 1_001, 7])
def test_what_is_no_list_of_rules_denies_everything(home: Path, rules: object) -> None:
    config = read(write(home / ".toolscript.json", rules))
    assert effect(config) is Effect.DENY
    [problem] = call_rules_of(config)[2]
    assert "so every call is denied" in problem.message


def test_the_rules_of_a_project_can_only_be_stricter(home: Path, tmp_path: Path) -> None:
    project = write(tmp_path / "project" / ".toolscript.json", [{"do": "allow"}])
    TrustStore(home).decide(project, project.read_text("utf-8"), trusted=True)
    own = write(home / ".toolscript.json", [{"do": "deny"}])
    assert effect(read(own, project)) is Effect.DENY
    write(own, [{"do": "allow"}])
    write(project, [{"do": "ask"}])
    TrustStore(home).decide(project, project.read_text("utf-8"), trusted=True)
    config = read(own, project)
    assert effect(config) is Effect.ASK
    assert rules_of(config).decide(DELETE, "cursor").reason == f"rule 1 of {project}"


def test_the_users_own_rules_apply_whatever_other_file_is_named(home: Path, tmp_path: Path) -> None:
    write(home / ".toolscript.json", [{"do": "deny"}], mcpServers={"other": {"command": "other"}})
    named = write(tmp_path / "named" / "servers.json", [{"do": "allow"}], mcpServers={"a": {"command": "a"}})
    config = ConfigPlace(str(named)).read({})
    assert effect(config) is Effect.DENY
    assert rules_of(config).decide(DELETE, "cursor").reason == "rule 1 of ~/.toolscript.json"
    assert [spec.name for spec in config.servers] == ["a"]
    assert home / ".toolscript.json" in ConfigPlace(str(named)).watched()


def test_rules_are_no_reason_to_miss_servers(home: Path) -> None:
    assert read(write(home / ".toolscript.json", [{"do": "ask"}])).problems == ()


@pytest.mark.parametrize(
    "written",
    [
        {"rules": None},
        {"rule": [{"do": "allow"}]},
        {"Rules": [{"do": "allow"}]},
        {"rules ": []},
        {"ruels": [], "rules": {}},
        {"rules": [{"do": "allow"}], "RULES": []},
    ],
)
def test_a_mistake_in_the_key_denies_every_call_and_is_named(home: Path, written: dict[str, object]) -> None:
    file = home / ".toolscript.json"
    file.write_text(json.dumps(written), "utf-8")
    config = read(file)
    assert effect(config) is Effect.DENY
    _, _, [problem] = call_rules_of(config)
    assert "so every call is denied" in problem.message


def test_an_unknown_key_that_is_no_near_miss_denies_nothing(home: Path) -> None:
    file = home / ".toolscript.json"
    file.write_text(json.dumps({"mcpServers": {}, "roles": [], "ruleset": 1}), "utf-8")
    assert effect(read(file)) is Effect.ALLOW


@pytest.mark.parametrize("is_named", [True, False])
def test_the_rules_of_an_own_file_that_others_may_write_make_calls_stricter(home: Path, is_named: bool) -> None:
    own = write(home / ".toolscript.json", [{"tools": "files__delete", "is": "read"}, {"do": "deny"}])
    own.chmod(0o666)
    other = write(home / "other.json", [{"do": "allow"}])
    config = read(named=str(other)) if is_named else read(own)
    assert effect(config) is Effect.DENY
    assert rules_of(config).own == ()
    assert any("other users may write it" in problem.message for problem in config.problems)
