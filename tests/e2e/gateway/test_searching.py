"""Search results and reasons. Each query runs on every interface, with the same result."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.e2e.gateway.catalogs import TOOLS
from tests.e2e.gateway.machines import Gateway, Machine, copy_of
from tests.e2e.gateway.scenarios import scenario
from tests.e2e.gateway.surfaces import Answer, CommandLine, Http, Surface, mcp_over_http, mcp_over_stdio

Surfaces = dict[str, Surface]


@pytest.fixture(scope="module")
async def surfaces(
    furnished: Machine, served: tuple[Machine, Gateway], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Surfaces]:
    machine, gateway = served
    another = copy_of(furnished, tmp_path_factory.mktemp("another") / "machine")
    async with AsyncExitStack() as stack:
        alone = await stack.enter_async_context(mcp_over_stdio(another))
        await alone.until_model(gateway.search("anything")["model"])
        yield {
            "command line, alone": CommandLine(furnished),
            "command line, with a gateway": CommandLine(machine),
            "HTTP": Http(gateway),
            "MCP over HTTP": await stack.enter_async_context(mcp_over_http(gateway)),
            "MCP over stdio, which starts one": alone,
        }


IN_OTHER_SCRIPTS = {
    "прогноз погоды": "weather__pogoda",
    "отправить письмо": "mail__otpravit",
    "创建会议": "calendar__chuangjian",
    "翻译文本": "calendar__fanyi",
}
IN_PLAIN_WORDS, TYPO, EXACT = "find files containing specific text", "read_fil", "read_file"
FOR_A_SHELL, NONSENSE = "commit my changes to git", "xylophone lessons for marsupials"
QUERIES = (IN_PLAIN_WORDS, TYPO, EXACT, FOR_A_SHELL, NONSENSE, *IN_OTHER_SCRIPTS)


@pytest.fixture(scope="module")
async def asked(surfaces: Surfaces) -> dict[str, list[Answer]]:
    """Return the results of every query on every interface."""
    return {name: await surface.search(*QUERIES) for name, surface in surfaces.items()}


@pytest.fixture(scope="module")
async def answers(asked: dict[str, list[Answer]]) -> dict[str, Answer]:
    return dict(zip(QUERIES, asked["HTTP"], strict=True))


@pytest.mark.requirement("TS-002", "TS-003", "TS-008")
@pytest.mark.parametrize("query", QUERIES)
async def test_the_same_query_gives_the_same_result_on_every_interface(
    asked: dict[str, list[Answer]], query: str
) -> None:
    value = {name: answers[QUERIES.index(query)] for name, answers in asked.items()}
    assert len(value) == 5
    assert value == dict.fromkeys(asked, value["HTTP"])
    assert value["HTTP"].semantic


@pytest.mark.requirement("TS-003", "TS-008")
@scenario("Natural language tool discovery")
@pytest.mark.states("S1-003", "S1-006", "S1-007", "S1-008", "S1-009")
async def test_a_request_in_plain_words_finds_the_tool_with_a_confidence_and_a_reason(
    answers: dict[str, Answer],
) -> None:
    answer = answers[IN_PLAIN_WORDS]
    assert answer.tools[0] == "desktop-commander__search_code"
    confidences = [item.confidence for item in answer.found]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0.35 <= item <= 1 for item in confidences)
    assert "Semantic similarity" in answer.found[0].reason
    assert "words search, file" in answer.found[0].reason


@pytest.mark.requirement("TS-003")
@scenario("Typo-tolerant keyword search")
@pytest.mark.states("S1-010", "S1-011", "S1-012", "S1-067")
async def test_a_name_with_a_typo_finds_the_tool_first_and_a_little_less_surely(
    answers: dict[str, Answer],
) -> None:
    typo, exact = answers[TYPO], answers[EXACT]
    assert typo.tools[0] == exact.tools[0] == "desktop-commander__read_file"
    assert "Fuzzy match of the name" in typo.found[0].reason
    assert exact.found[0].reason == "Exact name"
    assert 0.6 < typo.found[0].confidence < exact.found[0].confidence


@pytest.mark.requirement("TS-004")
@scenario("Semantic intent matching")
@pytest.mark.states("S1-013", "S1-015", "S1-069")
async def test_a_shell_is_found_for_what_it_can_do_and_the_reason_says_so(answers: dict[str, Answer]) -> None:
    best = answers[FOR_A_SHELL].found[0]
    assert best.tool == "shell__execute_command"
    assert best.reason == "Capability inference (shell → git operations)"
    assert best.confidence > 0.5


@pytest.mark.requirement("TS-003")
async def test_a_query_in_another_script_finds_what_is_described_in_it(answers: dict[str, Answer]) -> None:
    assert {query: answers[query].tools[0] for query in IN_OTHER_SCRIPTS} == IN_OTHER_SCRIPTS


@pytest.mark.requirement("TS-003")
async def test_an_unsupported_task_finds_nothing(answers: dict[str, Answer]) -> None:
    assert (answers[NONSENSE].found, answers[NONSENSE].total) == ((), 0)


@pytest.mark.requirement("TS-003")
@pytest.mark.states("S1-012")
def test_an_exact_name_is_always_first(gateway: Gateway) -> None:
    """With the server's name as a prefix, and alone if the name is unique."""
    missed = []
    for tool in TOOLS:
        full = f"{tool['server']}__{tool['name']}"
        for name in (full, tool["name"]):
            best = gateway.search(name)["results"][0]
            if (best["toolId"], best["reason"]) != (full, "Exact name"):
                missed.append((name, best))
    assert missed == []


@pytest.mark.requirement("TS-008", "TS-010")
async def test_a_call_returns_the_tools_result_on_every_interface(surfaces: Surfaces) -> None:
    sums = {name: await item.call("plain__add", {"a": 2, "b": 40}) for name, item in surfaces.items()}
    assert {name: (item.text, item.data, item.is_error) for name, item in sums.items()} == dict.fromkeys(
        surfaces, ("the sum", {"sum": 42}, False)
    )
    with_a_gateway = {name: item for name, item in surfaces.items() if not name.endswith(("alone", "starts one"))}
    failures = {name: await item.call("plain__fail", {}) for name, item in with_a_gateway.items()}
    assert {name: (item.text, item.is_error) for name, item in failures.items()} == dict.fromkeys(
        with_a_gateway, ("it went wrong", True)
    )


@pytest.mark.requirement("TS-009")
async def test_types_are_the_same_on_every_interface(surfaces: Surfaces) -> None:
    expected = ("desktop-commander__read_file", "filesystem__read")
    modules = {name: await item.types(*expected) for name, item in surfaces.items()}
    assert all(f'callTool("/tools/{item}"' in modules["HTTP"] for item in expected)
    for_agents = {name: module for name, module in modules.items() if "MCP" in name}
    assert {name: modules[name] for name in {*modules} - {*for_agents}} == dict.fromkeys(
        {*modules} - {*for_agents}, modules["HTTP"]
    )
    # An agent calls tools itself: it reads the same types, and nothing that runs.
    assert len({*for_agents.values()}) == 1
    for module in for_agents.values():
        assert all(f"\n{item}(params" in module for item in expected)
        assert "callTool" not in module


@pytest.mark.requirement("TS-008")
async def test_a_requested_schema_is_returned_by_a_running_gateway_too(
    served: tuple[Machine, Gateway],
) -> None:
    machine, _ = served
    async with mcp_over_stdio(machine) as surface:
        asked = {"query": "filesystem__read", "detail": "schema", "limit": 1}
        result = (await surface.client.call_tool("search_tools", asked)).structured_content
    assert result is not None
    assert result["results"][0]["input_schema"]["required"] == ["file_path"]
