"""Whether anything fits a query to documents or to the library: on the real engines, with a real model, over HTTP,
MCP, the Python client and the command line.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.commands import run_here
from tests.e2e.tenants.service import Service, served
from tests.support.hive_notes import ANSWERED, ESPRESSO, UNANSWERED, hive_notes
from tests.support.token_issuer import Issuer
from toolscript import Client
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("VE-001", "DOC-001", "KN-001")

GUESS = "no good match: the best of these is a guess"
DESCALING = {"id": "coffee", "text": "To reset the espresso machine, hold both buttons until the lamp goes out."}
DOCUMENTS, LIBRARY = "/api/v1/documents/search", "/api/v1/knowledge/search"


@pytest.fixture(scope="module")
def service(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Issuer]]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as installation,
        served(installation, settings=_own_model(installation)) as (service, issuer),
    ):
        book = tmp_path_factory.mktemp("books") / "bees.md"
        book.write_text(
            "# Bees\n\n" + "\n\n".join(f"## {title}\n\n{text}" for title, text in hive_notes()), "utf-8"
        )
        run_here(installation.environment, "ingest", str(book))
        with Client(service.url, token=issuer.token("hives")) as client:
            notes = enumerate(hive_notes())
            client.documents.put([{"id": str(n), "text": t, "metadata": {"title": h}} for n, (h, t) in notes])
        with Client(service.url, token=issuer.token("kitchen")) as client:
            client.documents.put([DESCALING])
        yield service, issuer


def _own_model(installation: Installation) -> dict[str, str]:
    return {
        "TOOLSCRIPT_EMBEDDING_URL": "",
        "TOOLSCRIPT_EMBEDDING_MODEL": installation.environment["TOOLSCRIPT_EMBEDDING_MODEL"],
    }


def post(service: tuple[Service, Issuer], path: str, tenant: str, **body: object) -> Any:
    headers = {"Authorization": f"Bearer {service[1].token(tenant)}"}
    response = httpx2.post(f"{service[0].url}{path}", json=body, headers=headers, timeout=60, trust_env=False)
    assert response.status_code == 200, response.text
    return response.json()


def verdicts(service: tuple[Service, Issuer], path: str, tenant: str, *queries: str) -> list[bool | None]:
    answers = [post(service, path, tenant, query=query) for query in queries]
    assert all(answer["results"] for answer in answers)
    return [answer["metadata"]["good_match"] for answer in answers]


@pytest.mark.parametrize("path", [DOCUMENTS, LIBRARY])
def test_another_subject_is_no_good_match_among_three_hundred_texts(
    service: tuple[Service, Issuer], path: str
) -> None:
    assert verdicts(service, path, "hives", *UNANSWERED) == [False] * len(UNANSWERED)
    assert verdicts(service, path, "hives", *ANSWERED) == [True] * len(ANSWERED)


def test_one_document_alone_fits_its_own_subject_and_no_other(service: tuple[Service, Issuer]) -> None:
    assert verdicts(service, DOCUMENTS, "kitchen", ESPRESSO) == [True]
    assert verdicts(service, DOCUMENTS, "kitchen", *ANSWERED, "asdf qwer") == [False] * 6


def test_every_page_has_the_verdict_and_a_list_and_a_single_retriever_have_none(
    service: tuple[Service, Issuer],
) -> None:
    first = post(service, DOCUMENTS, "hives", query=ESPRESSO, limit=100, cursor="*")["metadata"]
    later = post(service, DOCUMENTS, "hives", query=ESPRESSO, limit=100, cursor=first["next_cursor"])["metadata"]
    assert (first["good_match"], later["good_match"]) == (False, False)
    assert post(service, DOCUMENTS, "hives", cursor="*")["metadata"]["good_match"] is None
    for path in (DOCUMENTS, LIBRARY):
        for search_type in ("semantic", "keyword"):
            answer = post(service, path, "hives", query="swarming", search_type=search_type)
            assert (bool(answer["results"]), answer["metadata"]["good_match"]) == (True, None)


def test_the_aliases_stay_as_the_source_documents_have_them(service: tuple[Service, Issuer]) -> None:
    assert "good_match" not in post(service, "/search", "hives", query=ESPRESSO)
    assert "good_match" not in post(service, "/search_knowledge", "hives", query=ESPRESSO)["metadata"]


@pytest.mark.parametrize("tool", ["search_documents", "search_knowledge"])
def test_an_agent_is_told_that_nothing_fits(service: tuple[Service, Issuer], tool: str) -> None:
    async def answer(query: str) -> tuple[str, Any]:
        headers = {"Authorization": f"Bearer {service[1].token('hives')}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            McpClient(streamable_http_client(f"{service[0].url}/mcp", http_client=http), mode="auto") as client,
        ):
            result = (await client.call_tool(tool, {"query": query})).model_dump(by_alias=True, mode="json")
        return result["content"][0]["text"], result["structuredContent"]["metadata"]["good_match"]

    text, verdict = asyncio.run(answer(ESPRESSO))
    assert (text.startswith("No good match: "), verdict) == (True, False)
    text, verdict = asyncio.run(answer(ANSWERED[0]))
    assert (text.startswith("[1] "), verdict) == (True, True)


def test_client_and_command_tell_it(service: tuple[Service, Issuer]) -> None:
    token = service[1].token("hives")
    with Client(service[0].url, token=token) as client:
        assert client.documents.search(ESPRESSO).metadata.good_match is False
        assert client.knowledge.search(ANSWERED[0]).metadata.good_match is True
    mine = {"TOOLSCRIPT_SERVICE_URL": service[0].url, "TOOLSCRIPT_TOKEN": token}
    assert GUESS in run_here(mine, "documents", "search", ESPRESSO).stderr
    fitting = run_here(mine, "documents", "search", ANSWERED[0], "--json")
    assert GUESS not in fitting.stderr
    assert json.loads(fitting.stdout)["metadata"]["good_match"] is True
    beyond = run_here(mine, "documents", "search", ESPRESSO, "--offset", "400", code=1)
    assert GUESS not in beyond.stderr
