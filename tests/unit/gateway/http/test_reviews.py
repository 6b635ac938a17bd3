"""Reviews over HTTP: anyone of the user's programs may read them, and a decision needs the token."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.gateway.http import requests
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.gateway.approvals import Decision, Review, Status
from toolscript.gateway.http import create_gateway_app

TOKEN = "t0ken"
PATH = "/api/v1/reviews"

pytestmark = pytest.mark.requirement("TR-002", "TR-004")


def review(number: int, status: Status = Status.CHANGED) -> Review:
    name = f"tool_{number}"
    return Review(
        f"{number:032}", f"files__{name}", "tool", "files", name, status, held=True, seen_at=0, difference=""
    )


async def ask(
    gateway: GatewayDouble, method: str, path: str, body: object = None, *, token: str = ""
) -> requests.Reply:
    app = create_gateway_app(gateway, limit=3, threshold=0.0, token=TOKEN, is_same_person=lambda *_: True)
    headers = [("authorization", f"Bearer {token}")] if token else []
    content = b"" if body is None else json.dumps(body).encode()
    return await requests.ask(app, path, *headers, method=method, body=content)


async def test_reviews_are_listed_page_by_page() -> None:
    gateway = GatewayDouble(waiting=[review(number) for number in (3, 1, 2)])
    first: dict[str, Any] = (await ask(gateway, "GET", f"{PATH}?limit=2")).json
    assert [entry["id"] for entry in first["results"]] == ["files__tool_1", "files__tool_2"]
    second = (await ask(gateway, "GET", f"{PATH}?limit=2&cursor={first['next_cursor']}")).json
    assert [entry["id"] for entry in second["results"]] == ["files__tool_3"]
    assert second["next_cursor"] is None


async def test_reviews_are_filtered_by_server_and_status() -> None:
    gateway = GatewayDouble(waiting=[review(1), review(2, Status.NEW)])
    assert (await ask(gateway, "GET", f"{PATH}?server=other")).json["results"] == []
    [new] = (await ask(gateway, "GET", f"{PATH}?status=new")).json["results"]
    assert new["id"] == "files__tool_2"
    assert (await ask(gateway, "GET", f"{PATH}?status=odd")).status == 422


async def test_the_words_of_a_server_are_shown_with_the_token_alone() -> None:
    gateway = GatewayDouble(waiting=[replace(review(1), difference="+description: Do this first")])
    [without] = (await ask(gateway, "GET", PATH)).json["results"]
    [with_token] = (await ask(gateway, "GET", PATH, token=TOKEN)).json["results"]
    assert (without["difference"], with_token["difference"]) == ("", "+description: Do this first")


@pytest.mark.parametrize("decision", [*Decision])
async def test_a_decision_needs_the_token_also_from_the_users_own_programs(decision: Decision) -> None:
    gateway = GatewayDouble(waiting=[review(1)])
    body = {"digests": [review(1).digest]}
    refused = await ask(gateway, "POST", f"{PATH}/{decision}", body)
    assert (refused.status, gateway.decisions) == (401, [])
    done = await ask(gateway, "POST", f"{PATH}/{decision}", body, token=TOKEN)
    assert (done.status, [entry["id"] for entry in done.json["results"]]) == (200, ["files__tool_1"])
    assert gateway.decisions == [(decision, (review(1).digest,))]


@pytest.mark.parametrize("body", [{}, {"digests": []}, {"digests": "x"}, {"digests": ["x"], "all": True}])
async def test_a_decision_names_digests_and_nothing_else(body: object) -> None:
    assert (await ask(GatewayDouble(), "POST", f"{PATH}/approve", body, token=TOKEN)).status == 422
