"""Answers to random requests match the gateway's OpenAPI document. More: openapi_examples.py."""

import pytest

from tests.support.random_requests import failures_of, report
from tests.unit.gateway.http.openapi_examples import ask_gateway
from tests.unit.gateway.http.test_openapi import OPERATIONS

pytestmark = pytest.mark.requirement("AP-001", "TS-008")

SEED = 20261115


@pytest.mark.parametrize(("examples", "edges"), [(4, False), pytest.param(1_000, True, marks=pytest.mark.nightly)])
async def test_every_answer_of_every_operation_is_as_documented(examples: int, edges: bool) -> None:
    requests = await ask_gateway(examples, SEED, edges=edges)
    assert failures_of(requests) == {}, report(requests)
    assert requests.keys() == {f"{method} {path}" for method, path in OPERATIONS}
    assert [name for name, item in requests.items() if not item.reached] == []
