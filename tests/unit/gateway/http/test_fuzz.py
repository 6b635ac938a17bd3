"""Fuzzing: every request gets a documented answer, never an internal error."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import Reply, ask

pytestmark = pytest.mark.requirement("TS-008")

LENIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

Number = st.integers(-5, 200).map(str) | st.floats().map(str) | st.text(max_size=8)
Flag = st.sampled_from(["1", "true", "no", "", "?"])
Parameters = st.fixed_dictionaries(
    {},
    optional={
        "q": st.text(max_size=60),
        "limit": Number,
        "threshold": Number,
        "offset": Number,
        "kind": st.sampled_from(["tool", "prompt", "resource", "any"]) | st.text(max_size=5),
        "filter": st.text(max_size=30) | st.just("files,mail__send_mail"),
        "explain": Flag,
        "schemas": Flag,
        "compact": Flag,
        "x" * 10: st.text(max_size=5),
    },
)
Json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
Bodies = st.binary(max_size=40) | Json.map(lambda value: json.dumps(value).encode())
Names = st.sampled_from(["files__read_file", "demo__reject", "demo__vanish", "demo__fails"]) | st.text(max_size=20)


def is_documented(reply: Reply) -> None:
    assert reply.status < 500 or reply.status in (502, 503)
    assert "x-request-id" in reply.headers
    if reply.status >= 400:
        assert reply.error["code"] != "INTERNAL_ERROR"
        assert reply.error["message"]
    elif reply.headers.get("content-type") == "application/json":
        assert isinstance(reply.json, dict)


@LENIENT
@given(path=st.sampled_from(["/search", "/tools", "/runtime/tools.ts", "/health", "/servers"]), asked=Parameters)
async def test_any_parameters(app: Starlette, path: str, asked: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in asked.items())
    is_documented(await ask(app, f"{path}?{query}"))


@LENIENT
@given(query=st.text(max_size=60))
async def test_any_query_string(app: Starlette, query: str) -> None:
    is_documented(await ask(app, f"/search?{query}"))


@LENIENT
@given(name=Names, body=Bodies)
async def test_any_call(app: Starlette, name: str, body: bytes) -> None:
    is_documented(await ask(app, f"/tools/{name.replace('?', '')}", method="POST", body=body))


@LENIENT
@given(path=st.text(max_size=30), method=st.sampled_from(["GET", "POST", "PUT", "OPTIONS", "HEAD", "TRACE", "X"]))
async def test_any_path_and_method(app: Starlette, path: str, method: str) -> None:
    reply = await ask(app, "/" + path.replace("?", ""), method=method)
    if reply.status != 307:
        is_documented(reply)
