"""TypeScript of tools: which of them a module has, and how a search shows them."""

import re

import pytest

from tests.e2e.gateway.catalogs import TOOLS
from tests.e2e.gateway.machines import Gateway, Machine
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-009")

OF_DATABASE = {f"database__{one['name']}" for one in TOOLS if one["server"] == "database"}


def module(gateway: Gateway, wanted: str) -> str:
    answer = gateway.ask("/runtime/tools.ts", params={"filter": wanted})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/typescript")
    return answer.text


def called_by(module: str) -> set[str]:
    return set(re.findall(r'callTool\("/tools/([^"]+)"', module))


@scenario("Filter by server name")
def test_a_server_s_name_gives_all_its_tools_as_get_types_does(served: tuple[Machine, Gateway]) -> None:
    machine, gateway = served
    answered = module(gateway, "database")
    assert called_by(answered) == OF_DATABASE
    assert answered == machine.here().run("get-types", "database").stdout


@scenario("Filter by specific tool")
def test_a_tool_s_name_gives_this_tool_alone_as_get_types_does(served: tuple[Machine, Gateway]) -> None:
    machine, gateway = served
    answered = module(gateway, "plain__echo")
    assert called_by(answered) == {"plain__echo"}
    assert "export interface PlainEchoParams" in answered
    assert answered == machine.here().run("get-types", "plain__echo").stdout


@scenario("Filter multiple servers and tools")
def test_servers_and_tools_can_be_requested_together(served: tuple[Machine, Gateway]) -> None:
    machine, gateway = served
    answered = module(gateway, "database,plain__echo,desktop-commander__read_file")
    assert called_by(answered) == OF_DATABASE | {"plain__echo", "desktop-commander__read_file"}
    message = machine.here().run("get-types", "database", "plain__echo", "desktop-commander__read_file").stdout
    assert answered == message


def test_no_filter_gives_every_tool_and_no_prompt_or_resource(gateway: Gateway) -> None:
    every = {one["toolId"] for one in gateway.ask("/tools").json()["tools"] if one["kind"] == "tool"}
    assert called_by(module(gateway, "")) == every


def test_a_filter_without_matches_is_reported(gateway: Gateway) -> None:
    answer = gateway.ask("/runtime/tools.ts", params={"filter": "nothing__here"})
    assert answer.status_code == 404
    assert "nothing__here" in answer.json()["error"]["message"]


@scenario("TypeScript types output format")
@pytest.mark.states("S1-060", "S1-079", "S1-082", "S1-083", "S1-084", "S1-085")
def test_a_search_can_show_types_after_a_table_of_what_was_found(served: tuple[Machine, Gateway]) -> None:
    machine, gateway = served
    result = gateway.search("read file")["results"]
    rows = [f"| {one['toolId']} | {one['confidence']:.2f} | {one['reason']} |" for one in result]
    expected = ",".join(one["toolId"] for one in result)
    document = machine.here().run("search", "read file", "--output", "types").stdout
    head, _, rest = document.partition("```typescript\n")
    code, _, usage = rest.partition("```\n")
    assert head.split("\n") == [
        "## Search Results",
        "",
        "| Tool | Confidence | Reason |",
        "|------|-----------|--------|",
        *rows,
        "",
        "",
    ]
    assert code == module(gateway, expected)
    assert "Usage example:" in usage
    assert "await tools.desktopCommander.read_file({" in usage
