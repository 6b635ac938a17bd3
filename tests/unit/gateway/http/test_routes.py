"""Every route: its answers and its errors."""

import json

import pytest
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import ask

pytestmark = pytest.mark.requirement("TS-008")


async def test_a_search_answers_in_the_documented_shape(app: Starlette) -> None:
    reply = await ask(app, "/search?q=read%20a%20file&limit=1&threshold=0.2")
    assert reply.status == 200
    expected = ["good_match", "model", "query", "results", "semantic", "threshold", "totalResults"]
    assert sorted(reply.json) == expected
    assert (reply.json["query"], reply.json["threshold"], reply.json["semantic"]) == ("read a file", 0.2, True)
    (hit,) = reply.json["results"]
    assert sorted(hit) == ["confidence", "description", "reason", "serverName", "toolId", "toolName"]
    assert (hit["toolId"], hit["serverName"], hit["toolName"]) == ("files__read_file", "files", "read_file")
    assert reply.json["totalResults"] >= 1


async def test_a_request_without_parameters_uses_the_settings(app: Starlette) -> None:
    reply = await ask(app, "/search?q=file")
    assert (len(reply.json["results"]), reply.json["threshold"]) == (2, 0.0)
    assert len((await ask(app, "/search?q=file&limit=3")).json["results"]) == 3


async def test_an_empty_answer_is_not_an_error_and_has_a_hint(app: Starlette) -> None:
    reply = await ask(app, "/search?q=a%20file&threshold=1")
    assert (reply.status, reply.json["results"], reply.json["totalResults"]) == (200, [], 0)
    assert "threshold" in reply.json["hint"]
    assert reply.json["near_misses"]


async def test_nothing_is_a_good_match_without_a_result(app: Starlette) -> None:
    for threshold in (0, 1):
        fits = (await ask(app, f"/search?q=read_file%20zzz&threshold={threshold}")).json
        assert fits["good_match"] is bool(fits["results"]) is (threshold == 0)
        nothing_fits = (await ask(app, f"/search?q=zzz%20qqq&threshold={threshold}")).json
        assert (nothing_fits["good_match"], nothing_fits["unmatched_words"]) == (False, ["zzz", "qqq"])


async def test_parts_and_schemas_are_returned_on_request(app: Starlette) -> None:
    hit = (await ask(app, "/search?q=read_file&limit=1&explain=true&schemas=1")).json["results"][0]
    assert hit["parts"]["fuzzy"] == 1.0
    assert hit["parts"]["contributions"]["name"] > 0
    assert hit["inputSchema"]["properties"]["path"]["type"] == "string"


@pytest.mark.parametrize(("kind", "names"), [("prompt", ["sum_up"]), ("resource", [])])
async def test_a_search_can_ask_for_other_kinds(app: Starlette, kind: str, names: list[str]) -> None:
    found = (await ask(app, f"/search?q=sum&kind={kind}")).json["results"]
    assert [one["toolName"] for one in found] == names
    assert all(one["kind"] == kind for one in found)
    anything = (await ask(app, "/search?q=sum_up&kind=any")).json["results"]
    assert anything[0]["toolName"] == "sum_up"


OUT_OF_RANGE: list[tuple[str, int, str | None]] = [
    ("", 400, None),
    ("q=", 400, None),
    ("q=%20%09", 400, None),
    ("q=" + "x" * 1001, 422, "q"),
    ("q=x&limit=0", 422, "limit"),
    ("q=x&limit=101", 422, "limit"),
    ("q=x&limit=-1", 422, "limit"),
    ("q=x&limit=", 422, "limit"),
    ("q=x&limit=1.5", 422, "limit"),
    ("q=x&limit=1e2", 422, "limit"),
    ("q=x&limit=%D9%A1", 422, "limit"),
    ("q=x&limit=" + "9" * 5000, 422, "limit"),
    ("q=x&threshold=1.1", 422, "threshold"),
    ("q=x&threshold=-0.1", 422, "threshold"),
    ("q=x&threshold=nan", 422, "threshold"),
    ("q=x&threshold=inf", 422, "threshold"),
    ("q=x&threshold=half", 422, "threshold"),
    ("q=x&threshold=", 422, "threshold"),
    ("q=x&kind=skill", 422, "kind"),
    ("q=x&kind=", 422, "kind"),
]


async def test_a_parameter_out_of_range_is_refused_by_name(app: Starlette, subtests: pytest.Subtests) -> None:
    for query, status, field in OUT_OF_RANGE:
        with subtests.test(query=query, status=status, field=field):
            reply = await ask(app, f"/search?{query}")
            assert (reply.status, reply.error["code"]) == (status, "VALIDATION_ERROR")
            assert reply.error["details"].get("field") == field


async def test_until_a_server_has_answered_a_search_is_503_and_health_is_starting(starting: Starlette) -> None:
    reply = await ask(starting, "/search?q=x")
    assert (reply.status, reply.error["code"]) == (503, "UNAVAILABLE")
    health = await ask(starting, "/health")
    assert (health.status, health.json["status"], health.json["ready"]) == (200, "starting", False)
    assert (await ask(starting, "/tools")).json == {"tools": [], "total": 0, "offset": 0}


async def test_health_servers_and_life(app: Starlette) -> None:
    health = (await ask(app, "/health")).json
    assert (health["status"], health["items"], health["semantic"]) == ("ok", 7, True)
    assert {one["name"]: one["status"] for one in health["servers"]} == dict.fromkeys(
        ("files", "mail", "demo"), "ready"
    )
    servers = (await ask(app, "/servers")).json
    assert [one["name"] for one in servers["servers"]] == ["demo", "files", "mail"]
    assert (await ask(app, "/livez")).json == {"status": "alive"}


async def test_tools_come_a_page_at_a_time(app: Starlette) -> None:
    whole = (await ask(app, "/tools")).json
    assert (whole["total"], len(whole["tools"]), whole["offset"]) == (7, 7, 0)
    pages = [(await ask(app, f"/tools?offset={offset}&limit=3")).json for offset in (0, 3, 6, 9)]
    assert [len(page["tools"]) for page in pages] == [3, 3, 1, 0]
    assert [one for page in pages for one in page["tools"]] == whole["tools"]
    assert "inputSchema" not in whole["tools"][0]


async def test_tools_can_be_filtered_and_have_their_schemas(app: Starlette) -> None:
    reply = (await ask(app, "/tools?filter=mail,%20files__read_file,&schemas=true")).json
    assert sorted(one["toolId"] for one in reply["tools"]) == ["files__read_file", "mail__send_mail"]
    assert all(set(one) >= {"inputSchema", "outputSchema", "annotations", "kind"} for one in reply["tools"])
    assert (await ask(app, "/tools?filter=nobody")).json["tools"] == []


@pytest.mark.parametrize("query", ["offset=-1", "offset=x", "limit=x", "limit=-3", "offset=1.0"])
async def test_an_invalid_page_is_refused(app: Starlette, query: str) -> None:
    assert (await ask(app, f"/tools?{query}")).status == 422


@pytest.mark.requirement("TS-009")
async def test_types_are_a_module_of_the_requested_tools(app: Starlette) -> None:
    reply = await ask(app, "/runtime/tools.ts?filter=mail")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/typescript; charset=utf-8")
    text = reply.body.decode()
    assert "send_mail" in text
    assert "read_file" not in text
    compact = await ask(app, "/runtime/tools.ts?filter=mail&compact=1")
    assert len(compact.body) < len(reply.body)
    missing = await ask(app, "/runtime/tools.ts?filter=nobody")
    assert (missing.status, missing.error["code"]) == (404, "NOT_FOUND")


@pytest.mark.requirement("TS-010")
async def test_a_call_passes_on_the_arguments_and_the_result(app: Starlette) -> None:
    body = json.dumps({"path": "a", "n": [1, None, {"ü": "💥"}]}).encode()
    reply = await ask(app, "/tools/files__read_file", method="POST", body=body)
    assert reply.status == 200
    assert reply.json == {
        "content": [{"type": "text", "text": "read_file"}],
        "isError": False,
        "structuredContent": json.loads(body),
    }
    failed = await ask(app, "/tools/demo__fails", method="POST")
    assert (failed.status, failed.json["isError"], failed.json["structuredContent"]) == (200, True, {})


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize(
    ("tool", "status", "code"),
    [
        ("files__absent", 404, "NOT_FOUND"),
        ("files__sum_up", 404, "NOT_FOUND"),
        ("no-tool", 422, "VALIDATION_ERROR"),
        ("", 422, "VALIDATION_ERROR"),
        ("demo__reject", 502, "UNAVAILABLE"),
        ("demo__vanish", 503, "UNAVAILABLE"),
    ],
)
async def test_a_call_that_cannot_be_made_says_why(app: Starlette, tool: str, status: int, code: str) -> None:
    reply = await ask(app, f"/tools/{tool}", method="POST", body=b"{}")
    assert (reply.status, reply.error["code"]) == (status, code)


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"3",
        b"null",
        b'"x"',
        b"{",
        b"{}{}",
        b"\xff",
        b"[" * 100000,
        b'{"a":' * 90000 + b"1" + b"}" * 90000,
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
    ],
    ids=lambda body: repr(body[:16]),
)
async def test_a_body_other_than_a_json_object_is_refused(app: Starlette, body: bytes) -> None:
    reply = await ask(app, "/tools/files__read_file", method="POST", body=body)
    assert (reply.status, reply.error["code"]) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize("length", [8 * 1024 * 1024 - 20, 8 * 1024 * 1024 + 1])
async def test_a_body_has_a_limit_however_it_arrives(app: Starlette, length: int) -> None:
    body = b'{"a":"' + b"x" * (length - 8) + b'"}'
    expected = 200 if length < 8 * 1024 * 1024 else 413
    for parts in (body, [body[at : at + 1_000_000] for at in range(0, length, 1_000_000)]):
        reply = await ask(app, "/tools/files__read_file", method="POST", body=parts)
        assert reply.status == expected
        if expected == 413:
            assert reply.error["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "NOT_FOUND"),
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/" + "x" * 5000, 404, "NOT_FOUND"),
        ("POST", "/search", 405, "VALIDATION_ERROR"),
        ("DELETE", "/tools", 405, "VALIDATION_ERROR"),
        ("GET", "/tools/files__read_file", 405, "VALIDATION_ERROR"),
        ("OPTIONS", "/search", 405, "VALIDATION_ERROR"),
    ],
)
async def test_errors_of_the_framework_have_the_common_format(
    app: Starlette, method: str, path: str, status: int, code: str
) -> None:
    reply = await ask(app, path, method=method)
    assert (reply.status, reply.error["code"]) == (status, code)
    assert len(reply.body) < 1000
    assert ("allow" in reply.headers) == (status == 405)


@pytest.mark.parametrize("path", ["/search?q=x", "/search", "/nowhere", "/health"])
async def test_every_answer_has_a_request_id(app: Starlette, path: str) -> None:
    assert len((await ask(app, path)).headers["x-request-id"]) == 32
    assert (await ask(app, path, ("x-request-id", "my-own.1"))).headers["x-request-id"] == "my-own.1"
    for bad in ("a" * 65, "two words", "ü", ""):
        assert (await ask(app, path, ("x-request-id", bad))).headers["x-request-id"] != bad
