"""Tokens are counted for what a model writes and reads, and for nothing else."""

import builtins
import sys
from typing import Any

import pytest

from tests.unit.gateway.mcp.gateway_double import ITEMS, GatewayDouble
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.tokens import definitions_of, listed_tokens, o200k_tokens
from toolscript.gateway.mcp.definitions import DEFINITIONS
from toolscript.gateway.mcp.tools import MetaTools
from toolscript_eval.tokens import Spread, as_data, as_text, measure_tokens


async def test_a_report_adds_up_letter_by_letter() -> None:
    asked: list[tuple[str, JsonObject]] = []

    async def ask(name: str, arguments: JsonObject) -> CallResult:
        asked.append((name, arguments))
        if name == "describe_tool":
            return CallResult(({"type": "text", "text": "d" * 50},), {"tools": []})
        hits = [] if arguments["query"] == "none" else [{"tool": "files__read_file"}, {"tool": "other__tool"}]
        return CallResult(({"type": "text", "text": "s" * 10},), {"results": hits})

    three: list[JsonObject] = [{"name": "search_tools", "outputSchema": {"never": "counted"}}]
    report = await measure_tokens(ITEMS, ["read", "none"], three, ask, len)
    written = len('{"name":"search_tools","arguments":{"query":"read"}}')
    described = len('{"name":"describe_tool","arguments":{"tool":"files__read_file"}}') + 50
    assert asked[1] == ("describe_tool", {"tool": "files__read_file"})
    assert [name for name, _ in asked] == ["search_tools", "describe_tool", "search_tools"]
    assert (report.tools, report.queries, report.found) == (4, 2, 1)
    assert report.three_listed == len('{"name":"search_tools"}')
    assert report.search == Spread(written + 10, written + 10)
    assert report.describe.mean == described / 2
    assert report.total.mean == report.three_listed + report.search.mean + report.describe.mean
    assert report.saved == round(1 - report.total.mean / report.all_listed, 4)


def test_every_tool_is_listed_with_its_name_description_and_arguments() -> None:
    (first, *rest) = definitions_of(ITEMS)
    assert first["name"] == "files__read_file"
    assert first["inputSchema"] == ITEMS[0].input_schema
    assert len(rest) == 3, "a prompt is not a tool"
    expected = (
        '{"name":"files__read_file","description":"Read the contents of a file.",'
        '"inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}'
    )
    assert listed_tokens([first], len) == len(expected)


def test_p95_is_between_the_last_two_of_twenty() -> None:
    spread = Spread.of(range(1, 21))
    assert spread.mean == 10.5
    assert 19 <= spread.p95 <= 20
    assert Spread.of([7]) == Spread(7, 7)


def test_data_counts_when_a_client_hands_on_the_data() -> None:
    result = CallResult(({"type": "text", "text": "words"}, {"type": "image", "data": "x"}), {"a": 1})
    assert (as_text(result), as_data(result)) == ("words", '{"a":1}')
    assert as_data(CallResult(({"type": "text", "text": "words"},))) == "words"


async def test_without_a_query_there_is_nothing_to_measure() -> None:
    with pytest.raises(InvalidRequest):
        await measure_tokens(ITEMS, [], DEFINITIONS, MetaTools(GatewayDouble()).call, len)


@pytest.mark.requirement("TS-003")
async def test_three_tools_and_a_search_cost_less_than_five_hundred_tools() -> None:
    from tests.unit.gateway.mcp.gateway_double import tool

    many = [
        *ITEMS,
        *(tool("more", f"tool_{number}", "Does one of many things.", path="string") for number in range(500)),
    ]
    tools = MetaTools(GatewayDouble(many))
    report = await measure_tokens(many, ["read file", "create issue"], DEFINITIONS, tools.call, o200k_tokens())
    assert report.found == 2
    assert report.three_listed < 900
    assert report.search.p95 < 200
    assert report.saved > 0.9


def test_a_missing_tokenizer_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("rs_bpe"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "rs_bpe", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SetupError) as raised:
        o200k_tokens()
    assert "rs-bpe" in raised.value.hint
