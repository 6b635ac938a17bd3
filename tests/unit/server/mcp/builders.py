"""The service's `/mcp` with a library, a catalog and documents in memory."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from tests.support.token_issuer import Issuer, an_issuer
from tests.unit.documents.http.builders import Parts as Documents
from tests.unit.documents.http.operations import as_sent
from tests.unit.gateway.runtime.serving import serving
from tests.unit.knowledge.search.builders import Shelf, open_shelf
from tests.unit.knowledge.search.conftest import filled
from tests.unit.tools.search.builders import Scene
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Plan, Principal, Scope, Tenant
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill
from toolscript.core.web.auth import optional_authenticator_of
from toolscript.core.web.errors import install_error_handlers
from toolscript.core.web.request_context import RequestContext
from toolscript.documents.model.document import Document
from toolscript.documents.model.points import DocumentCard
from toolscript.knowledge.http.routes import KnowledgeRoutes, knowledge_routes
from toolscript.server.mcp import open_mcp
from toolscript.server.mcp_tools import ServiceDependencies
from toolscript.testing import HashEmbedder, MemoryIndexes, MemoryRequestBudget, MemoryTaxonomy
from toolscript.testing.documents import MemoryDocuments
from toolscript.tools.mcp.tools import CatalogDependencies

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN, OLD = "2026-07-28", "2025-06-18"
PUBLIC = frozenset({Scope.KNOWLEDGE_READ, Scope.TOOLS_READ})
LIBRARY = ["search_knowledge", "get_passage", "get_source", "list_sources"]
CATALOG = ["search_tools", "describe_tool", "list_skills"]
DOCUMENTS = ["search_documents"]
SMALL = Plan("small", requests_per_minute=2)
ME = {"name": "plain", "version": "1"}

Json = dict[str, Any]


class Clock:
    """Fixed at 18 seconds past the minute."""

    def __init__(self) -> None:
        self.at = 1_800_000_018.0

    def __call__(self) -> float:
        return self.at


@dataclass
class World:
    """Services behind `/mcp`, and settings of the installation."""

    keys: KeyRing
    shelf: Shelf
    documents: Documents
    scene: Scene = field(default_factory=Scene)
    clock: Clock = field(default_factory=Clock)
    public: frozenset[Scope] = PUBLIC
    per_minute: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    has: Sequence[str] = ("knowledge", "catalog", "documents")
    over_http: bool = False

    def parts(self) -> ServiceDependencies:
        taxonomy = MemoryTaxonomy(self.scene.catalog)
        for name in ("mail", "reading_files"):
            taxonomy.add_now(Skill(name, name.title(), f"What is about {name}"), "test")
        parts = {
            "knowledge": self.shelf.search,
            "catalog": CatalogDependencies(self.scene, self.scene.catalog, taxonomy),
            "documents": self.documents.routes(),
        }
        return ServiceDependencies(**{name: parts[name] for name in self.has})  # type: ignore[arg-type]

    @asynccontextmanager
    async def app(self) -> AsyncIterator[FastAPI]:
        verifier = JwtVerifier(self.keys, TokenRules(Issuer.name, Issuer.audience), {"small": SMALL}, UNLIMITED)
        identify = optional_authenticator_of(
            verifier,
            MemoryRequestBudget(self.clock),
            public_scopes=self.public,
            public_requests_per_minute=self.per_minute,
        )
        output = {"jwt_keys": "keys.json", "jwt_issuer": Issuer.name, **self.settings}
        async with open_mcp(Settings(**output), self.parts(), identify) as routes:
            # Only the MCP routes: creating the whole API takes longer than a test.
            app = FastAPI(openapi_url=None)
            if self.over_http:
                app.include_router(knowledge_routes(KnowledgeRoutes(self.shelf.search, identify)))
            app.router.routes.extend(routes)
            install_error_handlers(app)
            app.add_middleware(RequestContext)
            yield app

    @asynccontextmanager
    async def client(self, **headers: str) -> AsyncIterator["Plain"]:
        """Yield an in-process HTTP client."""
        async with self.app() as app:
            transport = httpx2.ASGITransport(app, client=("203.0.113.7", 1234))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                yield Plain(http, headers)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        async with self.app() as app, serving(app) as url:
            yield url


@dataclass(frozen=True)
class Plain:
    http: httpx2.AsyncClient
    headers: Mapping[str, str] = field(default_factory=dict)

    async def post(
        self,
        method: str,
        params: Json | None = None,
        number: object = 1,
        shown: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Post a message of the newest version, which needs no handshake."""
        message = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": ME,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        output = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method == "tools/call":
            output["Mcp-Name"] = str((params or {}).get("name"))
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": message}}
        sent = as_sent({**ACCEPT, **output, **self.headers, **(shown or {})}.items())
        return await self.http.post("/mcp", json=body, headers=sent)

    async def names(self, shown: Mapping[str, str] | None = None) -> list[str]:
        listed = result_of(await self.post("tools/list", shown=shown))
        return [tool["name"] for tool in listed["tools"]]

    async def call(
        self, tool: str, arguments: Json | None = None, shown: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        return await self.post("tools/call", {"name": tool, "arguments": arguments or {}}, shown=shown)

    async def answer(
        self, tool: str, arguments: Json | None = None, shown: Mapping[str, str] | None = None
    ) -> Json:
        """Return the result of a tool call."""
        return result_of(await self.call(tool, arguments, shown))


def result_of(answer: httpx2.Response) -> Json:
    """Return the result, from JSON or from the single event of a stream."""
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"].startswith("application/json"):
        body: Json = answer.json()
    else:
        (data,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        body = json.loads(data.removeprefix("data: "))
    return body.get("result") or {"error": body["error"]}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def token(scope: str | None = None, plan: str | None = None) -> dict[str, str]:
    """Return a token of tenant acme; without scopes, the claim is left out."""
    return bearer(an_issuer().token("acme", scope=scope, plan=plan))


async def a_world(folder: Path) -> World:
    two = MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False)
    shelf = await filled(await open_shelf(*two))
    documents = Documents(MemoryDocuments(DocumentCard(HashEmbedder().model)))
    kept = [Document("a.md", "Whales are mammals.", {"year": 2026}), Document("b.md", "Bees fly.", {"year": 2020})]
    await documents.service.put(Principal(Tenant("acme")), kept)
    keys = KeyRing(KeyFile(an_issuer().write(folder / "keys.json")))
    return World(keys, shelf, documents)
