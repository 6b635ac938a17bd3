"""Tenants and anonymous clients at a production-like service. At full size: run.py and two_writers.py."""

import asyncio
import itertools
from collections.abc import Iterator

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.commands import run_here
from tests.e2e.tenants import two_writers
from tests.e2e.tenants.run import Size, report, run, watched
from tests.e2e.tenants.service import Service, clients, served
from tests.support.bad_tokens import bad_requests
from tests.support.token_issuer import Issuer
from tests.unit.documents.http.operations import as_sent, require_principal, require_refusal
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("DOC-004")

SECRET = "xylograph"
KINDS = 30
# Each must have hits, or the test proves nothing.
FINDING = (
    *(
        "semantic",
        "keyword",
        "hybrid rrf",
        "hybrid zscore",
        "hybrid best",
        "offset",
        "snippets",
        "metadata_fields",
    ),
    *("stream of lines", "stream of events", "cursor, by filters", "cursor, by rank", "hostile headers"),
)

Running = tuple[Service, Issuer, Settings]


@pytest.fixture(scope="module")
def running(engines: Settings, migrated_database: str) -> Iterator[Running]:
    """Run two processes, so that concurrent writers may reach different ones."""
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, "words") as fresh,
        served(fresh, TOOLSCRIPT_PROCESSES="2") as (service, issuer),
    ):
        yield service, issuer, fresh.settings


@pytest.mark.requirement("DOC-001", "DOC-002", "DOC-006", "DOC-007")
def test_similar_tenants_see_only_their_own_documents(running: Running) -> None:
    service, issuer, _ = running
    result = asyncio.run(watched(service.url, issuer, Size(tenants=8, queries=300, at_once=6, writers=2)))
    assert result.nothing_leaked, report(result)
    assert len(result.counts.asked) >= KINDS, report(result)
    assert [kind for kind in FINDING if not result.counts.hits_by_kind[kind]] == [], report(result)
    assert result.documents_written["documents removed"]


@pytest.mark.nightly
def test_a_leaking_service_is_detected(installation: Installation) -> None:
    result = run(installation, Size(tenants=4, queries=60, at_once=4, writers=1), leak="all")
    assert result.foreign, report(result)


@pytest.mark.requirement("DOC-006")
@pytest.mark.parametrize("remove", [False, True], ids=["writers alone", "somebody removes"])
def test_of_concurrent_writers_of_one_document_one_wins_completely(running: Running, remove: bool) -> None:
    service, issuer, settings = running
    size = two_writers.Size(rounds=5, remove=remove)
    assert asyncio.run(two_writers.write(service.url, issuer, settings, size)) == []


def test_every_bad_credential_is_refused_at_every_route(running: Running) -> None:
    service, issuer, _ = running
    assert asyncio.run(try_everything(service.url, issuer)) > 400


async def try_everything(url: str, issuer: Issuer) -> int:
    """Return the number of refused requests."""
    own = {"authorization": f"Bearer {issuer.token('acme')}"}
    put = {"documents": [{"id": "doc-1", "text": SECRET, "metadata": {"is": SECRET}}]}
    refused = 0
    async with clients(url, 8) as client:
        assert (await client.put("/documents", json=put, headers=own)).status_code == 200
        operations = list(require_principal((await client.get("/openapi.json")).json()))
        for operation, (kind, output) in itertools.product(operations, bad_requests(issuer).items()):
            if kind == "with a kind alone":
                # The HTTP client strips trailing spaces of headers.
                continue
            headers = as_sent([*operation.headers.items(), *output.headers])
            answer = await client.request(
                operation.method,
                operation.path,
                content=operation.body,
                headers=headers,
                params=dict(output.params),
            )
            require_refusal(answer, SECRET, f"{kind}: {operation}")
            refused += 1
        await bypass_is_a_header_like_any_other(client, issuer)
        assert (await client.get("/documents/doc-1", headers=own)).json()["text"] == SECRET
    return refused


async def bypass_is_a_header_like_any_other(client: httpx2.AsyncClient, issuer: Issuer) -> None:
    debug = {"X-Debug-Bypass-Auth": "1", "X-Debug-Tenant": "acme"}
    other = {"authorization": f"Bearer {issuer.token('other')}"}
    assert (await client.get("/documents/doc-1", headers=debug)).status_code == 401
    assert (await client.get("/documents/doc-1", headers={**debug, **other})).status_code == 404


@pytest.mark.parametrize("environment", [{}, {"TOOLSCRIPT_ENVIRONMENT": "production"}])
def test_with_the_debug_bypass_on_a_service_in_production_does_not_start(environment: dict[str, str]) -> None:
    allowed = {"TOOLSCRIPT_DEBUG_BYPASS_AUTH": "true", **environment}
    ended = run_here(allowed, "serve", "--port", "0", code=2)
    assert "TOOLSCRIPT_DEBUG_BYPASS_AUTH is for TOOLSCRIPT_ENVIRONMENT=development alone" in ended.stderr
