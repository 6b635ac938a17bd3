"""GET /search and its neighbours, as a program sees them."""

import pytest

from tests.e2e.gateway.catalogs import SERVERS
from tests.e2e.gateway.machines import Gateway, Machine, mcp_server
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-008")


@scenario("Search endpoint invocation")
def test_a_search_answers_with_these_fields_and_no_others(gateway: Gateway) -> None:
    answer = gateway.ask("/search?q=find+files&limit=5").json()
    always = {"query", "results", "totalResults", "threshold", "semantic", "good_match"}
    assert always <= {*answer} <= {*always, "hint", "model", "unmatched_words"}
    assert answer["good_match"] is True
    assert (answer["query"], answer["threshold"], answer["semantic"]) == ("find files", 0.35, True)
    assert 1 <= len(answer["results"]) <= 5
    assert answer["totalResults"] >= len(answer["results"])
    for result in answer["results"]:
        assert {*result} == {"toolId", "serverName", "toolName", "confidence", "reason", "description"}
        assert result["toolId"] == f"{result['serverName']}__{result['toolName']}"
        assert 0.35 <= result["confidence"] <= 1
        assert result["reason"]
    described = {result["toolId"]: result["description"] for result in answer["results"]}
    assert described["desktop-commander__search_files"] == "Search for files by name pattern"


@scenario("Search endpoint error handling")
@pytest.mark.states("S1-121", "S1-122")
def test_a_search_before_any_server_has_responded_is_503(machine: Machine) -> None:
    machine.configure({"slow": mcp_server("faulty", "hangs_at_start", startupTimeout=300)})
    with machine.gateway() as gateway:
        answer = gateway.ask("/search?q=find+files")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "UNAVAILABLE"
        assert "not ready" in answer.json()["error"]["message"]
        assert gateway.health()["status"] == "starting"
        assert gateway.ask("/livez").status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("q=%20", 400),
        ("q=x&limit=0", 422),
        ("q=x&limit=many", 422),
        ("q=x&threshold=2", 422),
        ("q=x&threshold=nan", 422),
        ("q=x&kind=skill", 422),
        (f"q={'x' * 1001}", 422),
    ],
)
def test_an_invalid_request_gets_the_error_schema(gateway: Gateway, query: str, status: int) -> None:
    answer = gateway.ask(f"/search?{query}")
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert answer.json()["error"]["message"]
    assert answer.headers["x-request-id"]


def test_a_search_can_request_prompts_resources_or_all_kinds(gateway: Gateway) -> None:
    assert gateway.search("code review", kind="prompt", threshold=0)["results"][0]["toolId"] == "plain__review"
    kinds = {
        result.get("kind", "tool") for result in gateway.search("a", kind="any", threshold=0, limit=100)["results"]
    }
    assert kinds == {"tool", "prompt", "resource"}


def test_an_unsupported_task_is_no_good_match_and_the_unmatched_words_are_named(gateway: Gateway) -> None:
    answer = gateway.search("xylophone lessons for marsupials")
    assert (answer["good_match"], answer["results"]) == (False, [])
    assert answer["unmatched_words"] == ["xylophone", "lessons", "marsupials"]
    assert answer["near_misses"]


def test_the_parts_of_a_confidence_are_returned_on_request(gateway: Gateway) -> None:
    parts = gateway.search("read file contents", explain=1)["results"][0]["parts"]
    assert {*parts} == {"semantic", "words", "fuzzy", "boost", "matched", "probability", "contributions"}
    assert parts["semantic"] > 0.3
    assert parts["contributions"]["meaning"] > 0
    assert {"word": "file", "field": "name", "read_as": ""} in parts["matched"]


def test_health_and_servers_report_the_state_of_each_server(gateway: Gateway) -> None:
    health = gateway.health()
    assert (health["status"], health["ready"], health["semantic"]) == ("ok", True, True)
    servers = gateway.ask("/servers").json()["servers"]
    assert servers == health["servers"]
    assert {server["name"]: server["status"] for server in servers} == dict.fromkeys((*SERVERS, "plain"), "ready")
    plain = next(server for server in servers if server["name"] == "plain")
    assert (plain["tools"], plain["prompts"], plain["resources"]) == (8, 1, 3)


def test_tools_are_listed_a_page_at_a_time(gateway: Gateway) -> None:
    total = gateway.ask("/tools").json()["total"]
    pages = [gateway.ask(f"/tools?offset={offset}&limit=10").json()["tools"] for offset in range(0, total, 10)]
    assert (
        len({(item["kind"], item["toolId"]) for page in pages for item in page}) == total - 1
    )  # two share a name
    assert [len(page) for page in pages[:-1]] == [10] * (len(pages) - 1)
    (read,) = gateway.ask("/tools?filter=filesystem__read&schemas=1").json()["tools"]
    assert read["inputSchema"]["required"] == ["file_path"]


@pytest.mark.requirement("TS-010")
def test_calls_over_http_keep_structured_content_and_refuse_what_is_wrong(gateway: Gateway) -> None:
    assert gateway.call("plain__add", a=1, b=2).json() == {
        "content": [{"type": "text", "text": "the sum"}],
        "isError": False,
        "structuredContent": {"sum": 3},
    }
    assert gateway.call("plain__fail").json()["isError"] is True
    assert gateway.call("plain__refuse").status_code == 502
    assert "not with me" in gateway.call("plain__refuse").json()["error"]["message"]
    assert gateway.call("plain__nothing").status_code == 404
    assert gateway.ask("/tools/plain__add", "POST", content=b"[1]").status_code == 422
