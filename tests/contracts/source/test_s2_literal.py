"""S2 with TOOLSCRIPT_SEARCH_TYPE=semantic: searches without a search type, on every interface."""

import json
from collections.abc import Iterator

import pytest

from tests.contracts.source.s2_service import LIBRARY, Json, Running, cosine_of_best, running
from tests.e2e.commands import run_here
from toolscript.core.embedding.scale import PROBES
from toolscript.core.settings.service import Settings

QUERY = "who pays the tax of the harbour"
CHOSEN: list[tuple[Json, tuple[str, str | None]]] = [
    ({}, ("semantic", None)),
    ({"search_type": None}, ("semantic", None)),
    ({"search_type": "semantic"}, ("semantic", None)),
    ({"search_type": "keyword"}, ("keyword", None)),
    ({"search_type": "hybrid"}, ("hybrid", "best")),
    ({"fusion": "rrf"}, ("hybrid", "rrf")),
    ({"fusion": "zscore", "search_type": None}, ("hybrid", "zscore")),
]


@pytest.fixture(scope="module")
def service(
    engines: Settings, migrated_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("s2")
    with running(engines, migrated_database, folder, TOOLSCRIPT_SEARCH_TYPE="semantic") as service:
        service.put(*LIBRARY)
        yield service


def hits(answer: Json) -> list[tuple[str, float]]:
    return [(hit["doc_id"], hit["score"]) for hit in answer["hits"]]


@pytest.mark.states("S2-039", "S2-041")
@pytest.mark.parametrize(("asked", "ran"), CHOSEN)
def test_the_default_is_the_installations_and_a_fusion_means_hybrid(
    service: Running, asked: Json, ran: tuple[str, str | None]
) -> None:
    answer = service.search({"query": QUERY, **asked})
    assert (answer["search_type"], answer["fusion"]) == ran


@pytest.mark.states("S2-021", "S2-022")
async def test_the_default_search_is_the_cosine_of_the_unchanged_query(service: Running) -> None:
    before = len(service.endpoint.asked)
    answer = service.search({"query": QUERY})
    assert service.endpoint.asked[before:] == [[QUERY]]
    best = answer["hits"][0]
    probes = {description for *_, description in PROBES}
    library = [
        asked for asked in service.endpoint.asked if not any(text.endswith(tuple(probes)) for text in asked)
    ]
    passages = max(library, key=len)
    assert len(passages) > len(LIBRARY)
    assert best["score"] == pytest.approx(await cosine_of_best(QUERY, passages), abs=1e-5)
    assert hits(answer) == hits(service.search({"query": QUERY, "search_type": "semantic"}))


@pytest.mark.states("S2-039")
def test_the_command_line_uses_the_services_default(service: Running) -> None:
    mine = {"TOOLSCRIPT_SERVICE_URL": service.url, "TOOLSCRIPT_TOKEN": service.issuer.token("acme")}

    def ran(*options: str) -> tuple[str, str | None]:
        done = run_here(mine, "documents", "search", QUERY, *options, "--json")
        metadata = json.loads(done.stdout)["metadata"]
        return metadata["search_type"], metadata["fusion"]

    assert ran() == ("semantic", None)
    assert ran("--search-type", "keyword") == ("keyword", None)
    assert ran("--fusion", "rrf") == ("hybrid", "rrf")


@pytest.mark.states("S2-039")
def test_an_agent_gets_the_installations_default(service: Running) -> None:
    def told(**arguments: object) -> Json:
        called = {"name": "search_documents", "arguments": {"query": QUERY, **arguments}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        answer = service.send("POST", "/mcp", body, {**service.as_tenant(), **accept}).text
        return dict(json.loads(answer[answer.index("{") :])["result"]["structuredContent"])

    own, keyword = told(), told(search_type="keyword")
    assert (own["metadata"]["search_type"], keyword["metadata"]["search_type"]) == ("semantic", "keyword")
    results = [(result["id"], result["score"]) for result in own["results"]]
    assert results == hits(service.search({"query": QUERY}))
