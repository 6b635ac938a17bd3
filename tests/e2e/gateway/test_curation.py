"""Rules of a person: edits of the file take effect in a running gateway, by hand and by command."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, new_machine, until

pytestmark = pytest.mark.requirement("TS-011")

TOOLS = [
    tool("hub", "create_issue", "Create a new issue in a repository"),
    tool("hub", "merge_pull_request", "Merge a pull request"),
    tool("booking", "buy_ticket", "Buy a ticket for a train"),
]
TICKET = "a ticket for a train after the crash"
ALL = {"hub__create_issue", "hub__merge_pull_request", "booking__buy_ticket"}


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    machine = new_machine(tmp_path_factory.mktemp("curated") / "machine", weights)
    curate(machine, [])
    with machine.gateway() as gateway:
        until(lambda: gateway.tool_names() == ALL, "the tools")
        yield machine, gateway


def curate(machine: Machine, curation: object) -> None:
    servers = catalog_servers(write_catalog(machine.folder / "tools.jsonl", TOOLS), ["hub", "booking"])
    machine.write_config(json.dumps({"mcpServers": servers, "curation": curation}))


def found(gateway: Gateway, text: str = TICKET) -> list[str]:
    return [hit["toolId"] for hit in gateway.search(text, threshold=0, limit=3)["results"]]


def until_first(gateway: Gateway, tool_id: str, text: str = TICKET) -> None:
    until(lambda: found(gateway, text)[:1] == [tool_id], f"{tool_id} first")


def test_rules_that_are_edited_take_effect_without_a_restart(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    curate(machine, [])
    until_first(gateway, "booking__buy_ticket")
    curate(machine, [{"kind": "promote", "tool": "hub__create_issue", "words": "ticket crash"}])
    until_first(gateway, "hub__create_issue")
    answer = gateway.search(TICKET, explain="true")
    assert answer["results"][0]["reason"] == "Promoted for `ticket crash`"
    assert (answer["results"][0]["confidence"], answer["good_match"]) == (1.0, True)
    assert answer["rules"] == ["hub__create_issue is promoted for `ticket crash`"]
    curate(machine, [{"kind": "never", "tool": "booking__buy_ticket", "words": "ticket crash"}])
    until(lambda: "booking__buy_ticket" not in found(gateway), "the exclusion")
    assert "booking__buy_ticket" in found(gateway, "buy a ticket")
    curate(machine, [])
    until_first(gateway, "booking__buy_ticket")


def test_the_file_that_the_config_names_is_followed_too(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    curate(machine, "rules.json")
    rules = machine.config.parent / "rules.json"
    rules.write_text('[{"kind": "synonym", "words": "PR", "means": "pull request"}] // ours', "utf-8")
    until(lambda: "words pr as pull request" in reason(gateway, "squash my PR").lower(), "the synonym")
    rules.write_text('[{"kind": "promote", "words": "squash", "tool": "hub__create_issue"}]', "utf-8")
    until_first(gateway, "hub__create_issue", "squash my PR")
    rules.unlink()
    until(lambda: not reason(gateway, "squash my PR").startswith("Promoted"), "the end of the rules")


def reason(gateway: Gateway, text: str) -> str:
    return str(gateway.search(text, threshold=0)["results"][0]["reason"])


def test_a_rule_with_a_mistake_is_logged_and_the_others_count(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    promote = {"kind": "promote", "tool": "hub__create_issue", "words": "ticket"}
    curate(machine, [{"kind": "promote", "words": "of the", "tool": "a__b"}, promote])
    until_first(gateway, "hub__create_issue")
    assert "rule 1 of curation has no effect" in gateway.log.read_text("utf-8")
    findings = machine.here().json("doctor", code=2)["findings"]
    assert any("rule 1 of curation has no effect" in finding["message"] for finding in findings)


def test_the_commands_add_list_and_remove_rules_of_a_running_gateway(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    curate(machine, [])
    until_first(gateway, "booking__buy_ticket")
    added = json.loads(
        machine.by_person("curation", "promote", "hub__create_issue", "ticket crash", "--json").stdout
    )["added"]
    machine.by_person("curation", "synonym", "PR", "pull request", "--mutual")
    machine.by_person("curation", "never", "booking__buy_ticket", "crash")
    until(lambda: "never for" in machine.here().run("search", TICKET, "--explain").stderr, "the last rule")
    listed = machine.here().json("curation", "list")["rules"]
    assert listed[0] == {"number": 1, **added}
    assert [rule["kind"] for rule in listed] == ["promote", "synonym", "never"]
    explained = machine.here().run("search", TICKET, "--explain")
    assert "rule: booking__buy_ticket is never for `crash`" in explained.stderr
    for _ in listed:
        machine.by_person("curation", "remove", "1")
    until_first(gateway, "booking__buy_ticket")
    assert json.loads(machine.config.read_text("utf-8"))["curation"] == []
