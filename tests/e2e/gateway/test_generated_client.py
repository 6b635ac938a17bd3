"""A generated client, run by a real Deno, calls tools through a real gateway."""

import json

import pytest

from tests.e2e.gateway.machines import Gateway
from tests.unit.gateway.typescript.deno import run_client_under_deno

SUM = 'console.log(JSON.stringify(await tools.plain.add({ "a": 2, "b": 40 })));'
FAILING = "try { await tools.plain.fail({}); } catch (error) { console.log(String(error)); }"


@pytest.mark.requirement("TS-009", "TS-010")
def test_a_client_under_deno_gets_what_the_tool_computed(gateway: Gateway) -> None:
    module = gateway.ask("/runtime/tools.ts", params={"filter": "plain"}).text
    assert json.loads(run_client_under_deno(gateway.url, module, SUM)) == {"sum": 42}


@pytest.mark.requirement("TS-009", "TS-010")
def test_a_failing_tool_throws_its_message(gateway: Gateway) -> None:
    module = gateway.ask("/runtime/tools.ts", params={"filter": "plain", "compact": "true"}).text
    message = gateway.call("plain__fail").json()["content"][0]["text"]
    assert message in run_client_under_deno(gateway.url, module, FAILING)
