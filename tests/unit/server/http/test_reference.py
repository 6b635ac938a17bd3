"""/docs: the whole API on a self-contained page, and security headers of every response."""

import json
from html.parser import HTMLParser
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI

from toolscript.core.health import Health
from toolscript.server.app import ApiAccess, create_app
from toolscript.server.reference import reference_html

pytestmark = [pytest.mark.requirement("API-003"), pytest.mark.slow]

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"


def app_of(access: ApiAccess | None = None) -> FastAPI:
    async def healthy() -> Health:
        return Health({})

    nothing = cast("Any", None)
    return create_app(nothing, nothing, nothing, nothing, healthy, access=access or ApiAccess())


def client_of(app: FastAPI) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1")


class Page(HTMLParser):
    """Elements of the page, and their links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.leads_to: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.leads_to |= {value or "" for name, value in attrs if name in ("src", "href", "action")}


async def test_the_page_has_every_operation_and_loads_nothing_but_its_own_style() -> None:
    async with client_of(app_of()) as client:
        answer, api = await client.get("/docs"), (await client.get("/openapi.json")).json()
        style = await client.get("/docs/reference.css")
    page = Page(answer.text)
    assert "script" not in page.tags
    assert {item for item in page.leads_to if not item.startswith("#")} == {"/docs/reference.css", "/openapi.json"}
    assert not {name for name in page.attributes if name == "style" or name.startswith("on")}
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "unsafe" not in answer.headers["content-security-policy"]
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            assert f"{method.upper()}</span><code>{path}</code>" in answer.text
            assert operation["summary"] in answer.text.replace("&#x27;", "'")


async def test_no_page_loads_remote_scripts_and_there_is_none_when_docs_are_off() -> None:
    async with client_of(app_of()) as client:
        assert (await client.get("/redoc")).status_code == 404
    async with client_of(app_of(ApiAccess(docs=False))) as client:
        for path in ("/docs", "/docs/reference.css", "/redoc", "/openapi.json"):
            assert (await client.get(path)).status_code == 404
        assert (await client.put("/livez")).headers["allow"] == "GET"


def test_descriptions_are_escaped() -> None:
    schema = {
        "type": "object",
        "properties": {HOSTILE: {"type": "string", "default": HOSTILE}},
        "required": [HOSTILE],
    }
    loop = {"type": "array", "items": {"$ref": "#/components/schemas/Loop"}}
    operation = {
        "tags": [HOSTILE],
        "summary": HOSTILE,
        "description": HOSTILE,
        "parameters": [{"name": HOSTILE, "in": "query", "required": True, "schema": {"enum": [HOSTILE]}}],
        "requestBody": {"content": {"application/json": {"schema": {"anyOf": [schema, loop]}}}},
        "responses": {"200": {"description": HOSTILE, "content": {"x/y": {"schema": {"$ref": "#/x/Loop"}}}}},
    }
    api = {
        "info": {"title": HOSTILE, "version": HOSTILE, "summary": HOSTILE},
        "paths": {f"/{HOSTILE}": {"post": operation}},
        "components": {"schemas": {"Loop": loop}},
    }
    page = Page(reference_html(json.loads(json.dumps(api))))
    assert not page.tags & {"script", "img"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/livez", 200),
        ("GET", "/docs", 200),
        ("GET", "/nowhere", 404),
        ("PUT", "/livez", 405),
        ("GET", "/api/v1/changes", 403),
        ("POST", "/api/v1/search", 422),
        ("GET", "/api/v1/skills", 500),
    ],
)
async def test_every_response_has_security_headers(method: str, path: str, status: int) -> None:
    async with client_of(app_of(ApiAccess(hosts=()))) as client:
        answers = [await client.request(method, path)]
        assert answers[0].status_code == status
        answers.append(await client.request(method, path, headers={"Host": "evil.example"}))
        assert answers[1].status_code == 403
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "x-request-id" in answer.headers
