"""`toolscript serve` with an ingested library: all clients get the same responses.

The clients are the MCP SDKs of Python and TypeScript, each in both protocol eras, and plain HTTP.
"""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.conftest import Installation
from tests.e2e.commands import run_here, serving
from tests.e2e.ingest.holdings import forget, named_library
from tests.e2e.tenants.embedding import endpoint
from tests.e2e.tenants.service import DIMENSIONS
from tests.support.npm_tools import installed
from tests.support.token_issuer import Issuer, an_issuer
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("KN-001", "KN-005")

CLIENTS = Path(__file__).parents[1] / "support" / "mcp_clients"
PAGES = {
    "bees.md": "# Keeping bees\n\n## The hive\n\nIt must be dry.\n\n## Food\n\nFeed sugar before winter comes.\n",
    "bridges.md": "# Steel bridges\n\n## Rust\n\nBridges rust where water stands.\n",
}
ASKED = {"query": "what do bees eat before winter", "limit": 3}
PER_MINUTE = 60

Json = dict[str, Any]


@dataclass(frozen=True)
class Service:
    url: str
    issuer: Issuer

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"


@pytest.fixture
def service(installation: Installation, engines: Settings, tmp_path: Path) -> Iterator[Service]:
    (books := tmp_path / "books").mkdir()
    for name, text in PAGES.items():
        (books / name).write_text(text, "utf-8")
    issuer = an_issuer()
    with named_library(engines) as library, endpoint(DIMENSIONS) as embeddings:
        environment = {
            **installation.environment,
            **library,
            "TOOLSCRIPT_JWT_KEYS": str(issuer.write(tmp_path / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": issuer.name,
            "TOOLSCRIPT_EMBEDDING_URL": embeddings,
            "TOOLSCRIPT_EMBEDDING_MODEL": "words",
            "TOOLSCRIPT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": str(PER_MINUTE),
        }
        run_here(environment, "ingest", str(books))
        # `serve` needs the index of tools, too.
        run_here(environment, "worker", "--drain")
        with serving(environment) as url:
            yield Service(url, issuer)
        asyncio.run(forget(environment))


async def by_python(url: str, mode: str) -> Json:
    async with Client(url, mode=mode) as client:
        listed = await client.list_tools()
        answer = await client.call_tool("search_knowledge", ASKED)
    return {"tools": [tool.name for tool in listed.tools], "result": answer.model_dump(by_alias=True, mode="json")}


async def by_typescript(url: str, asked: Json, token: str = "") -> Json:
    """Return the responses in both versions of its SDK."""
    command = ["node", str(CLIENTS / "ask.mjs"), url, json.dumps(asked), *([token] if token else [])]
    process = await asyncio.create_subprocess_exec(*command, cwd=installed(CLIENTS), stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    answers: Json = json.loads(output)
    assert answers.keys() == {"1.x", "2.x"}
    return answers


def without_time(answer: Json) -> Json:
    return {**answer, "metadata": {**answer["metadata"], "took_ms": 0}}


async def test_all_clients_get_the_same_responses_and_anonymous_ones_only_public_data(service: Service) -> None:
    async with httpx2.AsyncClient(base_url=service.url, trust_env=False) as http:
        over_http = (await http.post("/search_knowledge", json=ASKED)).json()
        output = {f"python {mode}": await by_python(service.mcp, mode) for mode in ("auto", "legacy")}
        request = {"name": "search_knowledge", "arguments": ASKED}
        output |= await by_typescript(service.mcp, request)
        first = over_http["results"][0]
        assert first["content"].strip().endswith("Feed sugar before winter comes.")
        assert (first["source"]["title"], first["source"]["position"]["section"]) == ("Keeping bees", "Food")
        for who, answer in output.items():
            structured = answer["result"]["structuredContent"]
            assert structured["metadata"].pop("good_match") is None, who
            assert without_time(structured) == without_time(over_http), who
            (block,) = answer["result"]["content"]
            assert block["text"].startswith("[1] Keeping bees: Keeping bees > Food, line 7, "), who
            assert block["text"] == output["1.x"]["result"]["content"][0]["text"], who
            assert "search_documents" not in answer["tools"], who
        await _is_limited(service, http)


async def _asked_when_all_is_spent(service: Service, http: httpx2.AsyncClient) -> Json:
    """Retry: a new minute may reset the limit at any time."""
    for _ in range(5):
        while (await http.get("/sources")).status_code != 429:
            pass
        refused = await by_typescript(service.mcp, {"name": "list_sources", "arguments": {}})
        if all("error" in answer for answer in refused.values()):
            return refused
    raise AssertionError("nobody is ever limited")


async def _is_limited(service: Service, http: httpx2.AsyncClient) -> None:
    """Check that HTTP and MCP share the limit of this address, and that a token has its own."""
    refused = await _asked_when_all_is_spent(service, http)
    assert refused["1.x"]["error"]["code"] == refused["2.x"]["error"]["status"] == 429
    request = {"name": "search_documents", "arguments": {"query": "anything"}}
    with_token = await by_typescript(service.mcp, request, service.issuer.token("acme"))
    for answer in with_token.values():
        assert answer["tools"][-1] == "search_documents"
        assert answer["result"]["structuredContent"]["results"] == []
    narrow = await by_typescript(service.mcp, request, service.issuer.token("acme", scope="documents:write"))
    assert narrow["1.x"]["error"]["code"] == 403
    assert narrow["2.x"]["error"]["name"] == "InsufficientScopeError"
