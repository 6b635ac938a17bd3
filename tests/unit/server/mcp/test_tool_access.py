"""Which tools a client can list and call: by scopes, tenant and installation."""

import pytest

from tests.support.bad_tokens import an_issuer, bad_tokens, misplaced_tokens
from tests.unit.server.mcp.builders import CATALOG, DOCUMENTS, LIBRARY, Json, World, bearer, token
from toolscript.core.auth.model import Scope

pytestmark = pytest.mark.requirement("KN-005")

CALLS: dict[str, Json] = {
    "search_knowledge": {"query": "bees"},
    "get_passage": {"chunk_id": "0" * 24},
    "get_source": {"source_id": "0" * 24},
    "list_sources": {},
    "search_tools": {"query": "read a file"},
    "describe_tool": {"id": 1},
    "list_skills": {},
    "search_documents": {"query": "whales"},
}
METADATA = 'resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource/mcp"'
ALL = 'scope="knowledge:read tools:read documents:read"'


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ({}, [*LIBRARY, *CATALOG]),
        (token(), [*LIBRARY, *CATALOG, *DOCUMENTS]),
        (token("documents:read"), [*LIBRARY, *CATALOG, *DOCUMENTS]),
        (token("documents:write"), [*LIBRARY, *CATALOG]),
        (token(""), [*LIBRARY, *CATALOG]),
        (token("openid profile"), [*LIBRARY, *CATALOG]),
        (bearer(an_issuer().token(scp=["documents:read"])), [*LIBRARY, *CATALOG, *DOCUMENTS]),
        (bearer(an_issuer().token(scopes=["tools:read"])), [*LIBRARY, *CATALOG]),
    ],
)
async def test_a_client_lists_the_tools_of_its_scopes_and_of_the_public_scopes(
    world: World, headers: dict[str, str], names: list[str]
) -> None:
    async with world.client(**headers) as client:
        assert await client.names() == names


@pytest.mark.parametrize(
    ("public", "shown"),
    [(Scope.TOOLS_READ, CATALOG), (Scope.KNOWLEDGE_READ, LIBRARY), (Scope.DOCUMENTS_READ, [])],
)
async def test_an_anonymous_client_can_neither_list_nor_call_a_tool_without_its_scope(
    world: World, public: Scope, shown: list[str]
) -> None:
    world.public = frozenset({public})
    async with world.client() as client:
        assert await client.names() == shown
        for name, arguments in CALLS.items():
            refused = await client.call(name, arguments)
            nonsense = await client.call(name.replace("s", "z"), arguments)
            if name in shown:
                assert refused.status_code == 200, name
                continue
            assert refused.status_code == nonsense.status_code == 400, name
            assert "www-authenticate" not in refused.headers
            assert refused.json()["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
            assert refused.text == nonsense.text.replace(name.replace("s", "z"), name)
    assert world.documents.searched == []


async def test_a_token_without_a_scope_gets_an_error_that_names_it(world: World) -> None:
    async with world.client(**token("documents:write")) as client:
        refused = await client.call("search_documents", {"query": "whales"})
    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == (
        f'Bearer {METADATA}, scope="documents:read", error="insufficient_scope"'
    )
    output = refused.json()
    assert (output["id"], output["error"]["code"]) == (1, 403)
    assert output["error"]["data"]["error"]["details"]["scope"] == "documents:read"
    assert world.documents.searched == []


async def test_a_body_that_the_guard_cannot_parse_calls_nothing(world: World) -> None:
    """Batches are not supported, and a name that is not a string matches no tool."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_documents"}}
    strange = [[request], {**request, "params": {"name": ["search_documents"]}}, {**request, "params": []}]
    async with world.client(**token("tools:read")) as client:
        for body in strange:
            headers = {"Accept": "application/json, text/event-stream", **client.headers}
            for version in ({}, {"MCP-Protocol-Version": "2025-06-18"}, {"MCP-Protocol-Version": "2026-07-28"}):
                answer = await client.http.post("/mcp", json=body, headers={**headers, **version})
                assert answer.status_code == 400 or '"error"' in answer.text, answer.text
    assert world.documents.searched == []


async def test_every_bad_token_is_refused_and_none_is_treated_as_anonymous(world: World) -> None:
    let_in = []
    async with world.client() as client:
        for kind, output in bad_tokens(an_issuer()).items():
            answer = await client.post("tools/list", shown=bearer(output))
            if answer.status_code != 401:
                let_in.append((kind, answer.status_code))
            assert answer.headers["www-authenticate"] == f'Bearer {METADATA}, {ALL}, error="invalid_token"', kind
            report = answer.json()
            assert (report["jsonrpc"], report["id"], report["error"]["code"]) == ("2.0", None, 401), kind
            assert output[-40:] not in answer.text, kind
    assert let_in == []


async def test_a_valid_token_in_the_wrong_place_is_refused_or_ignored(world: World) -> None:
    """Without `Authorization`, the client is anonymous, and gets no more than that."""
    async with world.client() as client:
        for kind, output in misplaced_tokens(an_issuer()).items():
            headers = [*client.headers.items(), *output.headers]
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            report = [("Accept", "application/json, text/event-stream"), *headers]
            answer = await client.http.post("/mcp", json=request, headers=report, params=dict(output.params))
            says_who = any(name == "Authorization" for name, _ in output.headers)
            assert answer.status_code == (401 if says_who else 200), kind
            assert "search_documents" not in answer.text, kind


async def test_without_public_scopes_the_first_request_gets_401(world: World) -> None:
    world.public = frozenset()
    async with world.client() as client:
        refused = await client.post("server/discover")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, f"Bearer {METADATA}, {ALL}")
        assert await client.names(shown=token("tools:read")) == CATALOG


@pytest.mark.parametrize("has", [("catalog",), ("knowledge",), ("documents",), ()])
async def test_a_missing_capability_has_no_tools(world: World, has: tuple[str, ...]) -> None:
    world.has = has
    expected = {"catalog": CATALOG, "knowledge": LIBRARY, "documents": DOCUMENTS}
    async with world.client(**token()) as client:
        assert await client.names() == [name for part in has for name in expected[part]]
        output = await client.http.get("/.well-known/oauth-protected-resource")
    scopes = {"catalog": "tools:read", "knowledge": "knowledge:read", "documents": "documents:read"}
    assert output.json()["scopes_supported"] == [scopes[part] for part in has]


async def test_documents_are_those_of_the_tenant_whose_token_it_is(world: World) -> None:
    async with world.client() as client:
        own = await client.answer("search_documents", {"query": "whales"}, shown=token())
        other = await client.answer(
            "search_documents", {"query": "whales"}, shown=bearer(an_issuer().token("other"))
        )
    assert own["structuredContent"]["results"][0]["id"] == "a.md"
    assert other["structuredContent"]["results"] == []
    assert [item["caller"].tenant.name for item in world.documents.searched] == ["acme", "other"]
