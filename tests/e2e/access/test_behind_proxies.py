"""Behind any proxy, the service requires a credential where one is needed."""

import tempfile
from asyncio import to_thread
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.access.proxies import ways_to
from tests.e2e.commands import run_here, serving
from tests.support.token_issuer import an_issuer
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("TR-004")

TOKEN = "admins-own-token-of-this-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
LOCAL = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
# Headers of a client that pretends to be local.
DISGUISES: list[dict[str, str]] = [
    {},
    {"Host": "localhost"},
    {"X-Forwarded-For": "127.0.0.1"},
    {"Host": "127.0.0.1", **LOCAL, "Origin": "http://localhost"},
]
# Routes for monitoring, and the API reference.
FOR_EVERYBODY = {"GET /livez", "GET /readyz", "GET /search/health"}
# Routes that are public: searches only.
FOR_THE_PUBLIC = {
    "POST /api/v1/tools/search",
    "POST /api/v1/skills/search",
    "POST /api/v1/search",
    "GET /api/v1/search/skills",
    "GET /api/v1/search/tools",
    "GET /api/v1/skills",
    "GET /api/v1/skills/{skill_id}",
    "GET /api/v1/skills/{skill_id}/tools",
    "GET /api/v1/sources",
    "GET /api/v1/sources/{name}",
    "GET /api/v1/tools",
    "GET /api/v1/tools/{tool_id}",
    "GET /api/v1/tools/{tool_id}/skills",
    "POST /api/v1/knowledge/search",
    "GET /api/v1/knowledge/sources",
    "GET /api/v1/knowledge/sources/{source_id}",
    "GET /api/v1/knowledge/chunks/{chunk_id}",
    "POST /search_knowledge",
    "GET /sources",
    "GET /sources/{source_id}",
    "GET /passages/{chunk_id}",
}
NOT_IN_OPENAPI = ["GET /metrics"]
NEW_SKILL = {"id": "planted", "name": "Planted"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yield a folder with a short path, as sockets need."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture(scope="module")
def filled(
    engines: Settings, migrated_database: str, model_folder: str, folder: Path
) -> Iterator[Mapping[str, str]]:
    """Return the environment of an installation with a catalog, metrics and tenants."""
    issuer = an_issuer()
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        items = catalog_files.write(folder / "items.jsonl", catalog_files.rows(3))
        run_here(fresh.environment, "sync", str(items))
        run_here(fresh.environment, "worker", "--drain")
        yield {
            **fresh.environment,
            "TOOLSCRIPT_METRICS": "true",
            "TOOLSCRIPT_JWT_KEYS": str(issuer.write(folder / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": issuer.name,
        }


@pytest.fixture(scope="module")
def service(filled: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Yield a service with a socket and without a token."""
    with serving({**filled, "TOOLSCRIPT_SOCKET": str(folder / "admin.sock")}) as url:
        yield url
    assert not (folder / "admin.sock").exists()


def operations(url: str) -> list[str]:
    """Return all operations of the API, so that new ones are covered automatically."""
    described: dict[str, Any] = asked("GET", f"{url}/openapi.json").json()
    result = [f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods]
    assert set(result) >= FOR_EVERYBODY | FOR_THE_PUBLIC | {"POST /api/v1/skills", "POST /api/v1/jobs"}
    return [*result, *NOT_IN_OPENAPI]


def asked(method: str, url: str, headers: dict[str, str] | None = None, body: object = None) -> httpx2.Response:
    with httpx2.Client(trust_env=False, verify=False, timeout=60) as client:
        return client.request(method, url, headers=headers, json=body)


def path_of(operation: str) -> str:
    path = operation.split()[1].replace("{skill_id}", "planted")
    while "{" in path:
        path = f"{path[: path.index('{')]}1{path[path.index('}') + 1 :]}"
    return path


async def let_in(url: str, wanted: list[str]) -> list[str]:
    """Return the operations that were not refused, with the way of access."""
    result = []
    async with ways_to(url) as ways, httpx2.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        for way, address in ways.items():
            for disguise in DISGUISES:
                for item in wanted:
                    method = item.split()[0]
                    body: object = None if method == "GET" else {}
                    answer = await client.request(method, address + path_of(item), headers=disguise, json=body)
                    if answer.status_code not in (401, 403) or not answer.json()["error"]["details"]["hint"]:
                        result.append(
                            f"{item} through {way} with {disguise}: {answer.status_code} {answer.text[:200]}"
                        )
    return result


async def test_without_a_token_no_proxy_makes_a_client_an_administrator(service: str) -> None:
    for_admins = [
        operation for operation in operations(service) if operation not in FOR_EVERYBODY | FOR_THE_PUBLIC
    ]
    assert await let_in(service, for_admins) == []
    async with ways_to(service) as ways:
        for address in ways.values():
            refused = await to_thread(asked, "POST", f"{address}/api/v1/skills", {"Host": "localhost"}, NEW_SKILL)
            assert "TOOLSCRIPT_ADMIN_TOKEN" in refused.json()["error"]["details"]["hint"]
            search = await to_thread(asked, "POST", f"{address}/api/v1/search", body={"query": "read"})
            assert search.status_code == 200
    assert asked("GET", f"{service}/api/v1/skills/planted").status_code == 404


def test_every_route_refuses_dns_rebinding(service: str) -> None:
    everything = [*operations(service), "GET /docs", "GET /openapi.json", "POST /mcp"]
    answers = {
        item: asked(item.split()[0], service + path_of(item), {"Host": "evil.example"}) for item in everything
    }
    assert {item: answer.status_code for item, answer in answers.items() if answer.status_code != 403} == {}
    for answer in answers.values():
        assert "TOOLSCRIPT_ALLOWED_HOSTS" in answer.json()["error"]["details"]["hint"]


def test_the_socket_admits_every_client_that_can_open_its_file(service: str, folder: Path) -> None:
    _admits(folder / "admin.sock", "one")


def test_the_socket_reaches_every_process_and_an_allowed_host_every_route(
    filled: Mapping[str, str], folder: Path
) -> None:
    socket = folder / "two.sock"
    more = {
        "TOOLSCRIPT_SOCKET": str(socket),
        "TOOLSCRIPT_SOCKET_MODE": "660",
        "TOOLSCRIPT_PROCESSES": "2",
        "TOOLSCRIPT_ALLOWED_HOSTS": "search.example, other.example",
    }
    with serving({**filled, **more}) as url:
        assert asked("GET", f"{url}/api/v1/skills", {"Host": "other.example:8443"}).status_code == 200
        assert asked("GET", f"{url}/api/v1/skills", {"Host": "evil.example"}).status_code == 403
        _admits(socket, "two", 0o660)
    assert not socket.exists()


def _admits(socket: Path, name: str, mode: int = 0o600) -> None:
    assert socket.stat().st_mode & 0o777 == mode
    with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(socket)), timeout=60) as client:
        skill = {"id": f"socket_{name}", "name": "Over the socket"}
        assert client.post("http://localhost/api/v1/skills", json=skill).status_code == 201
        assert client.get("http://localhost/api/v1/changes").status_code == 200
        assert "toolscript_" in client.get("http://localhost/metrics").text
    run_here({"TOOLSCRIPT_SOCKET": str(socket)}, "tools", "search", "read a file", "--threshold", "0")


@pytest.mark.nightly
async def test_with_a_token_configured_no_proxy_reads_private_data_without_it(
    filled: Mapping[str, str],
) -> None:
    private = {**filled, "TOOLSCRIPT_ADMIN_TOKEN": TOKEN, "TOOLSCRIPT_PUBLIC_SCOPES": ""}
    reads = (
        "/api/v1/search/tools?query=read",
        "/api/v1/audit",
        "/api/v1/changes",
        "/api/v1/jobs",
        "/metrics",
    )
    with serving(private) as url:
        assert (
            await let_in(url, [operation for operation in operations(url) if operation not in FOR_EVERYBODY]) == []
        )
        async with ways_to(url) as ways:
            for number, address in enumerate(ways.values()):
                for path in reads:
                    read = await to_thread(asked, "GET", address + path, ADMIN)
                    assert read.status_code == 200, (address, path)
                skill = {**NEW_SKILL, "id": f"planted_{number}"}
                made = await to_thread(asked, "POST", f"{address}/api/v1/skills", ADMIN, skill)
                assert made.status_code == 201
        _the_command_line_shows_its_token(url)


def _the_command_line_shows_its_token(url: str) -> None:
    index = {"TOOLSCRIPT_SERVICE_URL": url}
    assert "a token is needed" in run_here(index, "tools", "search", "read", code=2).stderr
    output = {**index, "TOOLSCRIPT_TOKEN": TOKEN}
    run_here(output, "tools", "search", "create an invoice", "--threshold", "0")
    assert "no skill matches" in run_here(output, "tools", "skills", "create an invoice", code=1).stderr
