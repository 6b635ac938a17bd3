"""`serve --demo`: the service in memory, with something to find, on this machine alone."""

import json
import shlex
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse

from toolscript.core.audit import NoAudit
from toolscript.core.auth.keys import KeyRing
from toolscript.core.auth.model import Plan, Principal, Scope, Tenant
from toolscript.core.auth.signing import make_keys, sign_token
from toolscript.core.auth.tokens import JwtVerifier
from toolscript.core.embedding.download_failures import model_folder
from toolscript.core.embedding.scale import scale_of
from toolscript.core.errors import SetupError
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.settings.service import Settings
from toolscript.core.web.hosts import is_loopback_host
from toolscript.core.web.logs import configure_logs
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantList
from toolscript.server.access import open_sockets
from toolscript.server.demo_contents import (
    DemoContents,
    fill_catalog,
    fill_library,
    memory_stores,
    read_contents,
)
from toolscript.server.documents import ServedVersion, cursor_secret, document_routes
from toolscript.server.health import DocumentHealth
from toolscript.server.knowledge import knowledge_search
from toolscript.server.observability import NOT_OBSERVED
from toolscript.server.processes import run
from toolscript.server.reference import ONLY_OUR_STYLE, STYLE_PATH
from toolscript.server.serve import answer
from toolscript.server.settings import load_settings
from toolscript.server.stores import open_embedder
from toolscript.server.tenancy import DEFAULT_PLAN, Tenancy, token_rules
from toolscript.server.wiring import Backends, SharedResources, admission_of, open_api, tool_search
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryRequestBudget, MemoryTenants
from toolscript.testing.documents import MemoryTenantPlaces

TITLE = "Toolscript demo"
ON_WITH_ENGINES = """\
pip install 'toolscript[service]'       # and PostgreSQL, Qdrant and, for a library, MongoDB
toolscript migrate                      # TOOLSCRIPT_POSTGRES_URL
toolscript sync my-tools.jsonl          # or the MCP servers of your .toolscript.json
toolscript ingest handbook/             # TOOLSCRIPT_QDRANT_URL, TOOLSCRIPT_MONGO_URL
toolscript serve"""

TENANT = Tenant("demo")
ISSUER = "toolscript-demo"
TOKEN_HOURS = 24.0
# Enough dimensions that the hashes of two words hardly ever collide.
DIMENSIONS = 384
# Settings that the demo takes from the environment; the others concern engines and access.
KEPT = ("host", "port", "embedding_model", "log_level", "log_format")


@dataclass(frozen=True)
class Step:
    title: str
    command: str


@dataclass(frozen=True)
class Tour:
    """The commands to try. `counts` maps each kind of content to its number."""

    address: str
    token: str
    model: str
    counts: Mapping[str, int]

    @property
    def about(self) -> str:
        counted = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        return (
            f"The service of Toolscript in one process, without an engine: {counted}. It listens on this machine "
            "alone. All data is in memory and is lost when it ends. The settings of an installation are ignored."
        )

    @property
    def about_model(self) -> str:
        if self.model:
            return f"Texts are embedded by {self.model}."
        return (
            "No model is loaded: vectors are hashes of the words, so similarity only means words in common. "
            "Set TOOLSCRIPT_EMBEDDING_MODEL to the folder of a model in ONNX format to search by meaning."
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        client = {"mcpServers": {"toolscript": {"type": "http", "url": f"{self.address}/mcp"}}}
        return (
            Step("Find a tool", self._post("/api/v1/tools/search", query="schedule a calendar event", limit=3)),
            Step(
                "See why it was found",
                f'toolscript tools search "read a file" --explain --url {shlex.quote(self.address)}',
            ),
            Step(
                "Ask the library",
                self._post("/api/v1/knowledge/search", query="my compost heap smells", limit=2),
            ),
            Step("Become the tenant whose documents are here, for a day", f"TOKEN={self.token}"),
            Step(
                "Find a document of this tenant",
                self._post(
                    "/api/v1/documents/search",
                    '-H "Authorization: Bearer $TOKEN"',
                    query="how many days of holiday",
                    limit=2,
                ),
            ),
            Step("Let an agent do the same, over MCP; documents need the token as a header", json.dumps(client)),
        )

    @property
    def text(self) -> str:
        tries = "\n\n".join(f"{step.title}:\n{step.command}" for step in self.steps)
        return (
            f"{TITLE}: {self.address}\n{self.about}\n{self.about_model}\n\n{tries}\n\n"
            f"All requests and answers: {self.address}/docs\nGo on with engines: {self.address}/\nCtrl+C ends it."
        )

    @property
    def html(self) -> str:
        tries = "".join(f"<h3>{escape(step.title)}</h3><pre>{escape(step.command)}</pre>\n" for step in self.steps)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="{STYLE_PATH}"></head>\n<body><h1>{TITLE}</h1>\n'
            f"<p>{escape(self.about)}</p>\n<p>{escape(self.about_model)}</p>\n<h2>Try it</h2>\n{tries}"
            '<p><a href="/docs">/docs</a> describes every request and answer, '
            '<a href="/openapi.json">/openapi.json</a> does so for programs.</p>\n'
            f"<h2>Go on with engines</h2>\n<pre>{escape(ON_WITH_ENGINES)}</pre>\n</body></html>\n"
        )

    async def page(self, _: Request) -> HTMLResponse:
        return HTMLResponse(self.html, headers={"Content-Security-Policy": ONLY_OUR_STYLE})

    def _post(self, path: str, header: str = "", **body: object) -> str:
        data = shlex.quote(json.dumps(body))
        parts = ("curl -s", f"{self.address}{path}", header, "-H 'Content-Type: application/json' -d", data)
        return " ".join(part for part in parts if part)


def serve_demo(*, host: str | None, port: int | None, tell: Callable[[str], None]) -> None:
    """Serve the demo, and pass the commands to try to `tell` once it accepts requests."""
    settings = demo_settings(load_settings(), host, port)
    configure_logs(settings.log_level, settings.log_format)
    with open_sockets(settings) as shared:
        address = f"http://{settings.host}:{shared[0].getsockname()[1]}"
        common, access, contents = (
            SharedResources("", cursor_secret(settings)),
            demo_access(settings),
            read_contents(),
        )
        tour = Tour(address, access.token, _model_folder(settings), _counts(contents))
        opening = open_demo(settings, common, access, contents, tour)
        run(answer(settings, common, shared, opening, lambda: tell(tour.text)))


def demo_settings(configured: Settings, host: str | None, port: int | None) -> Settings:
    kept = {name: getattr(configured, name) for name in KEPT if name in configured.model_fields_set}
    kept |= ({"host": host} if host else {}) | ({} if port is None else {"port": port})
    settings = Settings.model_construct(
        None,
        **{
            "log_level": "warning",
            "log_format": "text",
            "jwt_issuer": ISSUER,
            "public_scopes": f"{Scope.KNOWLEDGE_READ} {Scope.TOOLS_READ}",
            **kept,
        },
    )
    if not is_loopback_host(settings.host):
        raise SetupError(
            "the demo listens on this machine alone", hint="leave --host and TOOLSCRIPT_HOST out, or 127.0.0.1"
        )
    return settings


@dataclass(frozen=True)
class DemoAccess:
    """The public part of a key generated for this run, and the one token signed with it."""

    keys: bytes
    token: str


def demo_access(settings: Settings) -> DemoAccess:
    with tempfile.TemporaryDirectory() as folder:
        files = make_keys(Path(folder))
        token = sign_token(files.private, token_rules(settings), TENANT, hours=TOKEN_HOURS)
        return DemoAccess(files.public.read_bytes(), token)


class MemoryKeySource:
    """Key source in memory."""

    fresh_seconds = grace_seconds = pause_seconds = 3600.0

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        return self._data


@asynccontextmanager
async def open_demo(
    settings: Settings, common: SharedResources, access: DemoAccess, contents: DemoContents, tour: Tour
) -> AsyncIterator[FastAPI]:
    async with (
        _embedder(settings) as embedder,
        _tenancy(settings, access) as tenancy,
        admission_of(settings, NOT_OBSERVED).adapting() as admission,
    ):
        stores = memory_stores()
        opened = await fill_catalog(stores, embedder, contents.items)
        library = await fill_library(embedder, contents.library)
        scale = await scale_of(embedder, None)
        behind = Backends(
            stores,
            embedder,
            opened,
            tool_search(settings, embedder, opened, stores, NOT_OBSERVED, scale),
            await _documents(settings, common, embedder, tenancy, contents, scale),
            knowledge_search(settings, library.indexes, embedder, library.reader, NOT_OBSERVED, scale),
        )
        async with open_api(settings, common, behind, tenancy, NOT_OBSERVED, admission) as app:
            app.add_route("/", tour.page)
            yield app


@asynccontextmanager
async def _embedder(settings: Settings) -> AsyncIterator[Embedder]:
    if not _model_folder(settings):
        yield HashEmbedder(dimensions=DIMENSIONS)
        return
    async with open_embedder(settings, parallel=1) as local:
        yield local


def _model_folder(settings: Settings) -> str:
    """Return the folder of the model, or "" if the setting names none: any other model would need a download."""
    return settings.embedding_model if model_folder(settings.embedding_model) else ""


@asynccontextmanager
async def _tenancy(settings: Settings, access: DemoAccess) -> AsyncIterator[Tenancy]:
    plan = Plan(DEFAULT_PLAN)
    keys = KeyRing(MemoryKeySource(access.keys))
    try:
        verifier = JwtVerifier(keys, token_rules(settings), {plan.name: plan}, plan)
        yield Tenancy(verifier, MemoryRequestBudget(), MemoryTenants(), plan, debug_bypass=False)
    finally:
        await keys.close()


async def _documents(
    settings: Settings,
    common: SharedResources,
    embedder: Embedder,
    tenancy: Tenancy,
    contents: DemoContents,
    scale: CosineScale | None,
) -> DocumentRoutes:
    index = MemoryDocuments(DocumentCard(embedder.model))
    search = DocumentSearch(
        embedder,
        index,
        spans=NOT_OBSERVED.spans_of("documents"),
        cursor_secret=common.cursor_secret,
        deadline_seconds=settings.deadline_seconds,
        scale=scale,
    )
    service = DocumentService(embedder, index, tenancy.tenants)
    await service.put(Principal(TENANT), contents.documents)
    health = DocumentHealth(embedder, index).check
    tenants = TenantList(index, MemoryTenantPlaces(index), tenancy.tenants)
    served = ServedVersion(index.name, search, service, tenants, health)
    return document_routes(served, tenancy, NOT_OBSERVED, settings.search_type, NoAudit())


def _counts(contents: DemoContents) -> dict[str, int]:
    return {
        "tools, prompts and resources": len(contents.items),
        "documents of one tenant": len(contents.documents),
        "sources of a library": len(contents.library),
    }
