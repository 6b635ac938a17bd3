"""What is found, and why. Each question is asked on every surface, and has one answer."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.whole.gateway.catalogs import TOOLS
from tests.whole.gateway.machines import Gateway, Machine
from tests.whole.gateway.scenarios import scenario
from tests.whole.gateway.surfaces import Answer, CommandLine, Http, Surface, mcp_over_http, mcp_over_stdio

Surfaces = dict[str, Surface]


@pytest.fixture(scope="module")
async def surfaces(furnished: Machine, served: tuple[Machine, Gateway]) -> AsyncIterator[Surfaces]:
    machine, gateway = served
    async with AsyncExitStack() as stack:
        yield {
            "command line, alone": CommandLine(furnished),
            "command line, with a gateway": CommandLine(machine),
            "HTTP": Http(gateway),
            "MCP over HTTP": await stack.enter_async_context(mcp_over_http(gateway)),
            "MCP over stdio, alone": await stack.enter_async_context(mcp_over_stdio(furnished)),
        }


async def ask(surfaces: Surfaces, query: str, limit: int = 3, threshold: float = 0.35) -> Answer:
    """The one answer that all surfaces give."""
    answers = {name: await surface.search(query, limit, threshold) for name, surface in surfaces.items()}
    first = answers["HTTP"]
    assert {name: one for name, one in answers.items() if one != first} == {}
    assert first.semantic
    return first


@pytest.mark.requirement("TS-003", "TS-008")
@scenario("Natural language tool discovery")
async def test_a_request_in_plain_words_finds_the_tool_with_a_confidence_and_a_reason(surfaces: Surfaces) -> None:
    answer = await ask(surfaces, "find files containing specific text")
    assert answer.tools[0] == "desktop-commander__search_code"
    confidences = [one.confidence for one in answer.found]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0.35 <= one <= 1 for one in confidences)
    assert "Semantic similarity" in answer.found[0].reason
    assert "files" in answer.found[0].reason


@pytest.mark.requirement("TS-003")
@scenario("Typo-tolerant keyword search")
async def test_a_name_with_a_typo_finds_the_tool_first_and_a_little_less_surely(surfaces: Surfaces) -> None:
    typo, exact = await ask(surfaces, "read_fil"), await ask(surfaces, "read_file")
    assert typo.tools[0] == exact.tools[0] == "desktop-commander__read_file"
    assert "Fuzzy match of the name" in typo.found[0].reason
    assert exact.found[0].reason == "Exact name"
    assert 0.6 < typo.found[0].confidence < exact.found[0].confidence


@pytest.mark.requirement("TS-004")
@scenario("Semantic intent matching")
async def test_a_shell_is_found_for_what_it_can_do_and_the_reason_says_so(surfaces: Surfaces) -> None:
    answer = await ask(surfaces, "commit my changes to git")
    assert answer.tools[0] == "shell__execute_command"
    assert answer.found[0].reason == "Capability inference (shell → git operations)"
    assert answer.found[0].confidence > 0.5


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("прогноз погоды", "weather__pogoda"),
        ("отправить письмо", "mail__otpravit"),
        ("创建会议", "calendar__chuangjian"),
        ("翻译文本", "calendar__fanyi"),
    ],
)
async def test_a_query_in_another_script_finds_what_is_described_in_it(
    surfaces: Surfaces, query: str, expected: str
) -> None:
    assert (await ask(surfaces, query)).tools[0] == expected


@pytest.mark.requirement("TS-003")
async def test_an_exact_name_is_always_first(gateway: Gateway) -> None:
    """With the server's name before it, and alone where no other tool has it."""
    missed = []
    for tool in TOOLS:
        full = f"{tool['server']}__{tool['name']}"
        for name in (full, tool["name"]):
            best = gateway.search(name)["results"][0]
            if (best["toolId"], best["reason"]) != (full, "Exact name"):
                missed.append((name, best))
    assert missed == []


@pytest.mark.requirement("TS-003")
async def test_what_no_tool_can_do_is_found_nowhere(surfaces: Surfaces) -> None:
    gateways = {name: one for name, one in surfaces.items() if not name.startswith("command line")}
    answer = await ask(gateways, "xylophone lessons for marsupials")
    assert (answer.found, answer.total) == ((), 0)


@pytest.mark.requirement("TS-008", "TS-010")
async def test_a_call_keeps_what_the_tool_answered_on_every_surface(surfaces: Surfaces) -> None:
    sums = {name: await one.call("plain__add", {"a": 2, "b": 40}) for name, one in surfaces.items()}
    assert {name: (one.text, one.data, one.is_error) for name, one in sums.items()} == dict.fromkeys(
        surfaces, ("the sum", {"sum": 42}, False)
    )
    failures = {name: await one.call("plain__fail", {}) for name, one in surfaces.items()}
    assert {name: (one.text, one.is_error) for name, one in failures.items()} == dict.fromkeys(
        surfaces, ("it went wrong", True)
    )


@pytest.mark.requirement("TS-009")
async def test_types_are_the_same_on_every_surface(surfaces: Surfaces) -> None:
    wanted = ("desktop-commander__read_file", "filesystem__read")
    modules = {name: await one.types(*wanted) for name, one in surfaces.items()}
    assert all(f'callTool("/tools/{one}"' in modules["HTTP"] for one in wanted)
    assert modules == dict.fromkeys(surfaces, modules["HTTP"])
