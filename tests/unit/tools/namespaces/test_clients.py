"""What each client sees and may do: tokens of one namespace, of several, of none, administrators, no token."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.token_issuer import an_issuer
from tests.unit.tools.namespaces.builders import (
    ALPHA,
    BETA,
    MANAGE,
    READ,
    Client,
    Json,
    Service,
    planted,
)
from tests.unit.tools.namespaces.conftest import MINE
from tests.unit.tools.namespaces.test_isolation import ADMIN_ONLY, API, CALLS
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.server.access import public_scopes
from toolscript.server.openapi import ACCESS
from toolscript.tools.http.access import Access

pytestmark = pytest.mark.requirement("AP-005")

LISTS = ("tools", "sources", "changes", "jobs", "suggestions")
REFUSED = {401, 403}
SEARCH = {"query": "send an email", "preset": "recall", "limit": 50, "strategy": "direct"}
# A body that is refused after the client has been let in, so that no test changes the catalog.
NOTHING: Json = {"nothing": 1}


@pytest.fixture(scope="module")
async def private(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A catalog that is not public."""
    async with planted(tmp_path_factory.mktemp("private"), *MINE, (BETA, "buchfink"), public_scopes="") as service:
        yield service


@pytest.fixture(scope="module")
async def development(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """An installation without an admin token, where every client on the machine is an administrator."""
    folder: Path = tmp_path_factory.mktemp("development")
    async with planted(folder, *MINE, local=True, environment="development") as service:
        yield service


def _operations() -> list[tuple[str, str, Access]]:
    """Return each operation with one path, and the access that it needs."""
    # The administrator is let in: a tool that there is would be gone for the other tests.
    paths = {
        operation: (calls[operation == "DELETE /tools/{tool_id}"][0], operation.split())
        for operation, calls in CALLS.items()
    }
    levels = []
    for operation, (path, (method, pattern)) in paths.items():
        resource = pattern.split("/")[1]
        tag = "tools" if resource == "search" else resource
        read, write = ACCESS[tag]
        is_read = method == "GET" or "search" in pattern
        levels.append((method, path, read if is_read else write))
        assert (levels[-1][2] is Access.ADMIN) is (operation in ADMIN_ONLY)
    return levels


@pytest.mark.parametrize(("method", "path", "needed"), _operations())
async def test_each_operation_admits_the_clients_that_may_use_it(
    method: str, path: str, needed: Access, private: Service, shared: Service
) -> None:
    async def admits(client: Client) -> bool:
        answer = await client.ask(method, path, None if method == "GET" else NOTHING)
        return answer.status_code not in REFUSED

    is_read, is_managed = needed is Access.READ, needed is not Access.ADMIN
    for service in (private, shared):
        assert await admits(service.client(ALPHA, READ)) is is_read
        assert await admits(service.client(ALPHA, None)) is is_read
        assert await admits(service.admin)
        # The source and the ids of the path are not those of a client without a namespace.
        assert await admits(service.client([ALPHA], MANAGE)) is is_managed
        assert not await admits(Client(service.http, "neither-the-admin-token-nor-a-token"))
        assert not await admits(Client(service.http, an_issuer().token("acme", exp=1)))
    assert await admits(private.client(ALPHA, "tools:manage")) is (is_managed and not is_read)
    assert not await admits(private.client(ALPHA, ""))
    assert not await admits(private.anonymous)
    assert await admits(shared.anonymous) is is_read


@pytest.mark.parametrize(
    ("claim", "seen"),
    [
        (None, {"default"}),
        (ALPHA, {ALPHA}),
        ([ALPHA], {ALPHA}),
        (f"{ALPHA} {BETA}", {ALPHA, BETA}),
        ([ALPHA, BETA, "default"], {ALPHA, BETA, "default"}),
        ([ALPHA, "NOT A NAME", 7, None, "*", "team_alpha"], {ALPHA}),
        (["unheard-of"], set()),
        ([], set()),
        ("", set()),
        ("*", set()),
        (7, set()),
        ({"name": ALPHA}, set()),
        (False, set()),
    ],
)
async def test_a_token_sees_the_namespaces_of_its_claim(
    claim: object, seen: set[str], shared: Service, private: Service
) -> None:
    for service in (shared, private):
        client = service.client(claim, MANAGE)
        for listed in LISTS:
            assert await client.names(f"{API}/{listed}?limit=200") == seen, listed
        # Decisions about skills, which all namespaces share, belong to none.
        assert await client.names(f"{API}/audit") - {None} == seen
        found = (await client.ask("POST", f"{API}/tools/search", SEARCH)).json()
        assert {hit["namespace"] for hit in found["results"]} == seen
        assert bool(found["metadata"]["unskilled_count"]) is bool(seen)
        described = await client.mcp.answer("describe_tool", {"ids": [1, 7, 13]})
        assert described["isError"] is not bool(seen)


async def test_a_claim_of_null_names_no_namespace(shared: Service) -> None:
    issuer = an_issuer()
    claims = {**issuer.claims("acme", scope=READ), "namespaces": None}
    token = _signed(claims)
    assert (await Client(shared.http, token).got(f"{API}/tools"))["results"] == []


def _signed(claims: Json) -> str:
    from tests.support.token_issuer import compact

    key = an_issuer().keys["ed-1"]
    return compact({"alg": key.algorithm, "kid": key.kid}, claims, key.sign)


async def test_a_token_of_too_many_namespaces_is_refused(shared: Service) -> None:
    names = [f"team-{number}" for number in range(33)]
    refused = await shared.client(names).ask("GET", f"{API}/tools")
    assert refused.status_code == 401
    assert "more than 32 namespaces" in refused.json()["error"]["message"]
    assert (await shared.client(names[:32]).got(f"{API}/tools"))["results"] == []


async def test_another_claim_can_name_the_namespaces(tmp_path: Path) -> None:
    async with planted(tmp_path, *MINE, jwt_namespaces_claim="teams") as service:
        token = an_issuer().token("acme", scope=READ, teams=[ALPHA], namespaces=["default"])
        assert await Client(service.http, token).names(f"{API}/tools") == {ALPHA}


async def test_an_anonymous_client_sees_the_default_namespace(shared: Service) -> None:
    for listed in ("tools", "sources"):
        assert await shared.anonymous.names(f"{API}/{listed}") == {"default"}
    found = (await shared.anonymous.ask("POST", f"{API}/tools/search", SEARCH)).json()
    assert {hit["namespace"] for hit in found["results"]} == {"default"}
    assert (await shared.anonymous.ask("GET", f"{API}/tools/7")).status_code == 404
    refused = await shared.anonymous.ask("POST", f"{API}/tools/search", {**SEARCH, "namespaces": [ALPHA]})
    assert refused.status_code == 403


async def test_an_administrator_lists_all_namespaces_and_searches_the_named_ones(shared: Service) -> None:
    every = {"default", ALPHA, BETA}
    for listed in LISTS:
        assert await shared.admin.names(f"{API}/{listed}?limit=200") == every
        assert await shared.admin.names(f"{API}/{listed}?namespace={BETA}") == {BETA}
        assert await shared.admin.names(f"{API}/{listed}?namespace=unheard-of") == set()
    for named in ([], [BETA], [ALPHA, BETA], [*every]):
        found = (await shared.admin.ask("POST", f"{API}/tools/search", {**SEARCH, "namespaces": named})).json()
        assert {hit["namespace"] for hit in found["results"]} == set(named or ["default"])


async def test_a_request_narrows_to_namespaces_that_the_token_sees(shared: Service) -> None:
    client = shared.client([ALPHA, BETA])
    found = (await client.ask("POST", f"{API}/tools/search", {**SEARCH, "namespaces": [BETA]})).json()
    assert {hit["namespace"] for hit in found["results"]} == {BETA}
    assert await client.names(f"{API}/tools?namespace={ALPHA}") == {ALPHA}
    refusals = [
        (await client.ask("POST", f"{API}/tools/search", {**SEARCH, "namespaces": [ALPHA, other]})).json()
        for other in ("default", "unheard-of")
    ]
    assert refusals[0] == refusals[1]
    assert refusals[0]["error"]["code"] == "FORBIDDEN"
    invalid = await client.ask("POST", f"{API}/tools/search", {**SEARCH, "namespaces": ["Not a name"]})
    assert invalid.status_code == 422


async def test_mcp_tells_tools_of_one_name_in_two_namespaces_apart(tmp_path: Path) -> None:
    """They are in the default namespace, and in another one."""
    async with planted(tmp_path, ("default", "amsel"), (ALPHA, "amsel")) as service:
        client = service.client(["default", ALPHA])
        arguments = {"query": "send an email to a person", "limit": 20, "threshold": 0}
        answer = await client.mcp.answer("search_tools", arguments)
        found = [hit for hit in answer["structuredContent"]["results"] if hit["tool"] == "amselhaus__amsel_mail"]
        assert {hit["namespace"] for hit in found} == {"default", ALPHA}
        by_http = (await client.ask("POST", f"{API}/tools/search", SEARCH)).json()["results"]
        namespaces = {hit["id"]: hit["namespace"] for hit in by_http}
        assert all(namespaces[hit["id"]] == hit["namespace"] for hit in found)
        ids = {hit["namespace"]: hit["id"] for hit in found}
        text = answer["content"][0]["text"]
        assert f"(id {ids['default']}): " in text
        assert f"(id {ids[ALPHA]}, namespace {ALPHA}): " in text
        described = await client.mcp.answer("describe_tool", {"ids": [*ids.values()]})
        assert [tool["namespace"] for tool in described["structuredContent"]["results"]] == [*ids]


async def test_counts_of_skills_are_those_of_the_namespaces_seen(shared: Service) -> None:
    async def count(client: Client, query: str = "") -> int:
        return int((await client.got(f"{API}/skills/communication{query}"))["tool_count"])

    parts = [await count(shared.client(name)) for name in ("default", ALPHA, BETA)]
    assert all(parts)
    assert await count(shared.client([ALPHA, BETA])) == parts[1] + parts[2]
    assert await count(shared.admin) == sum(parts)
    assert await count(shared.admin, f"?namespace={BETA}") == parts[2]
    skills = (await shared.client(ALPHA).got(f"{API}/skills?limit=200"))["results"]
    assert len(skills) == len((await shared.admin.got(f"{API}/skills?limit=200"))["results"])


async def test_in_development_a_token_counts_on_this_machine_too(development: Service) -> None:
    everything = await development.anonymous.names(f"{API}/tools")
    assert everything == {"default", ALPHA}
    assert (await development.anonymous.ask("DELETE", f"{API}/tools/99")).status_code == 404
    assert await development.client(ALPHA).names(f"{API}/tools") == {ALPHA}
    assert (await development.client(ALPHA).ask("DELETE", f"{API}/tools/7")).status_code == 403
    assert (await development.client(ALPHA, MANAGE).ask("DELETE", f"{API}/tools/1")).status_code == 404


async def test_a_public_scope_never_lets_everybody_manage() -> None:
    with pytest.raises(SetupError, match="may not name tools:manage") as refused:
        public_scopes(Settings(public_scopes="tools:read tools:manage"))
    assert "tools:manage" not in refused.value.hint


async def test_the_list_of_sources_pages_through_equal_names(private: Service) -> None:
    for namespace in (ALPHA, BETA):
        body: Any = {"source": "both", "items": [], "namespace": namespace}
        started = await private.admin.ask("POST", f"{API}/jobs", {**body, "items": [{"name": "x", "server": "y"}]})
        await private.admin.until_over(started.json()["id"])
    names: list[tuple[str, str]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await private.admin.got(f"{API}/sources?limit=1&cursor={cursor}")
        names += [(source["name"], source["namespace"]) for source in page["results"]]
        cursor = page["next_cursor"]
    assert names == sorted(names)
    assert names.count(("both", ALPHA)) == names.count(("both", BETA)) == 1
