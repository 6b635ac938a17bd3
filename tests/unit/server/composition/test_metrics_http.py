"""GET /metrics: metrics of real requests, and access control."""

import re
from collections.abc import Sequence

import httpx2
import pytest

from tests.unit.server.composition.observed_app import (
    ADMIN,
    FEW,
    client_of,
    observed_app,
    put_two,
    settings_of,
    watched,
)
from tests.unit.server.metrics.metrics_page import shown, value
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.web.auth import AdminAccess
from toolscript.server.observability import open_observability
from toolscript.testing import HashEmbedder

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.slow]

FIGURES = {"metrics": True}


async def page(client: httpx2.AsyncClient) -> bytes:
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.content


async def test_a_search_is_counted_with_its_stages_its_embedding_and_its_engine() -> None:
    async with watched(FIGURES) as client:
        await put_two(client)
        await client.post("/search", json={"query": "where are the keys", "fusion": "rrf"})
        shown_now = await page(client)
    labels = {"search_type": "hybrid", "fusion": "rrf", "outcome": "ok", "product": "documents"}
    assert value(shown_now, "toolscript_searches_total", **labels) == 1
    assert value(shown_now, "toolscript_searches_total") == 1
    assert value(shown_now, "toolscript_search_seconds_count", product="documents") == 1
    for stage in ("embed", "statistics", "retrieve", "fuse", "enrich"):
        assert value(shown_now, "toolscript_search_stage_seconds_count", stage=stage) == 1, stage
    assert value(shown_now, "toolscript_embedding_seconds_count", kind="query") == 1
    assert value(shown_now, "toolscript_engine_seconds_count", operation="search", outcome="ok") == 1
    assert value(shown_now, "toolscript_engine_seconds_count", operation="put") == 1
    assert value(shown_now, "toolscript_documents_put_total", outcome="created") == 2
    assert value(shown_now, "toolscript_passages_indexed_total") == 2


async def test_refused_searches_are_counted_as_refused() -> None:
    async with watched(FIGURES) as client:
        wrong = {"authorization": "Bearer nobodys"}
        assert (await client.post("/search", json={"query": "a"}, headers=wrong)).status_code == 401
        few = {"authorization": f"Bearer {FEW}"}
        statuses = [(await client.post("/search", json={"query": "a"}, headers=few)).status_code for _ in range(3)]
        assert (statuses.count(200), statuses.count(429)) == (1, 2)
        cursor = {"query": "a", "cursor": "no-cursor"}
        assert (await client.post("/search", json=cursor)).status_code == 422
        shown_now = await page(client)
    assert value(shown_now, "toolscript_tokens_refused_total") == 1
    assert value(shown_now, "toolscript_rate_limited_total") == 2
    assert value(shown_now, "toolscript_refusals_total", product="documents", reason="rate_limit") == 2
    assert value(shown_now, "toolscript_refusals_total") == 2
    assert value(shown_now, "toolscript_searches_total", outcome="refused") == 1
    assert value(shown_now, "toolscript_searches_total", outcome="error") == 0


class Away:
    model: ModelCard = HashEmbedder().model

    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable("away")

    embed_texts = HashEmbedder().embed_texts


async def test_a_search_without_a_part_is_counted_as_degraded_by_that_part() -> None:
    async with watched(FIGURES, embedder=Away()) as client:
        await put_two(client)
        result = await client.post("/search", json={"query": "keys"})
        assert result.json()["degraded"] == ["embedding"]
        shown_now = await page(client)
    assert value(shown_now, "toolscript_searches_total", outcome="degraded") == 1
    assert value(shown_now, "toolscript_searches_degraded_total", part="embedding") == 1
    assert value(shown_now, "toolscript_embedding_seconds_count", kind="query", outcome="error") == 1


async def test_requests_are_timed_by_the_template_of_their_route() -> None:
    async with watched(FIGURES) as client:
        await put_two(client)
        await client.get("/documents/doc-1")
        await client.get("/documents/none-such")
        await client.get("/nowhere/at/all")
        await client.patch("/search")
        await client.request("BREW", "/search")
        shown_now = await page(client)
    seen = {
        (labels["method"], labels["route"], labels["status"])
        for name, received in shown(shown_now)
        if name == "toolscript_http_request_seconds_count" and (labels := dict(received))
    }
    template = next(route for _, route, _ in seen if route.startswith("/documents/"))
    assert re.fullmatch(r"/documents/\{[^}]+\}", template)
    assert seen == {
        ("PUT", "/documents", "200"),
        ("GET", template, "200"),
        ("GET", template, "404"),
        ("GET", "unmatched", "404"),
        ("PATCH", "/search", "405"),
        ("other", "/search", "405"),
    }


async def test_paths_ids_and_tenants_add_no_series() -> None:
    async with watched(FIGURES) as client:

        async def ask(name: str) -> None:
            await client.get(f"/documents/{name}")
            await client.get(f"/{name}/{name}")
            await client.post("/search", json={"query": name})

        await ask("first")
        before = set(shown(await page(client)))
        for number in range(300):
            await ask(f"one-{number}")
        after = set(shown(await page(client)))
    added = {name for name, _ in after - before}
    assert added <= {f"toolscript_http_request_seconds_{item}" for item in ("bucket", "count", "sum")}
    assert {dict(labels)["route"] for _, labels in after - before} == {"/metrics"}


@pytest.mark.requirement("TR-004")
@pytest.mark.parametrize(
    ("admin", "address", "token", "status"),
    [
        (AdminAccess(ADMIN), "10.0.0.7", "", 401),
        (AdminAccess(ADMIN), "10.0.0.7", "wrong", 401),
        (AdminAccess(ADMIN), "10.0.0.7", ADMIN, 200),
        (AdminAccess(ADMIN), "127.0.0.1", "", 401),
        (AdminAccess(ADMIN, development=True), "127.0.0.1", "", 401),
        (AdminAccess(), "127.0.0.1", "", 403),
        (AdminAccess(development=True), "127.0.0.1", "", 200),
        (AdminAccess(development=True), "10.0.0.7", "", 403),
    ],
)
async def test_the_token_grants_access_and_so_does_loopback_in_development(
    admin: AdminAccess, address: str, token: str, status: int
) -> None:
    async with (
        open_observability(settings_of(FIGURES), None) as observability,  # type: ignore[arg-type]
        client_of(observed_app(observability, admin=admin), address) as client,
    ):
        answer = await client.get("/metrics", headers={"authorization": f"Bearer {token}" if token else ""})
    assert answer.status_code == status
    if status != 200:
        assert "toolscript_" not in answer.text


async def test_behind_a_proxy_the_token_is_needed_in_development_too() -> None:
    async with watched(FIGURES) as client:
        assert (await client.get("/metrics", headers={"x-forwarded-for": "127.0.0.1"})).status_code == 403


async def test_there_is_no_metrics_route_when_metrics_are_off() -> None:
    async with watched({}) as client:
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.post("/search", json={"query": "keys"})).status_code == 200


class NeverDone(HashEmbedder):
    """Embeds one batch, and never again."""

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        if self.texts_embedded >= 64:
            raise EmbedderUnavailable("away")
        return await super().embed_texts(texts)


async def test_a_put_stopped_by_a_server_error_is_counted_and_a_client_error_is_not() -> None:
    async with watched(FIGURES, embedder=NeverDone()) as client:
        headers = {"content-type": "application/x-ndjson"}
        lines = "".join(f'{{"id": "{number}", "text": "Some words."}}\n' for number in range(130))
        ended = await client.put("/documents", content=lines, headers=headers)
        assert ended.status_code == 200
        assert '"error":{"code": "UNAVAILABLE"' in ended.text.splitlines()[-1]
        assert (await client.put("/documents", content=b"{", headers=headers)).status_code == 200
        assert (await client.put("/documents", json={})).status_code == 422
        shown_now = await page(client)
    assert value(shown_now, "toolscript_document_puts_stopped_total") == 1
    assert value(shown_now, "toolscript_documents_put_total", outcome="created") == 64
