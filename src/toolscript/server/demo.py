"""serve --demo: the service on the doubles in memory, with something to find, on this machine alone."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from toolscript.adapters.jwt_tokens import JwtCallers, KeyRing, make_keys, sign_token
from toolscript.adapters.local_model.refusals import model_folder
from toolscript.errors import SetupError
from toolscript.model.document_cards import DocumentCard
from toolscript.model.tenancy import Caller, Plan, Tenant
from toolscript.ports import Embedder
from toolscript.search.documents.search import DocumentSearch
from toolscript.service.access import sockets_of
from toolscript.service.assembling import Behind, Common, admission_of, assembled, tool_search
from toolscript.service.demo_contents import (
    DemoContents,
    filled_catalog,
    filled_library,
    memory_stores,
    read_contents,
)
from toolscript.service.demo_tour import Tour
from toolscript.service.documents import cursor_secret, document_routes
from toolscript.service.event_loop import run
from toolscript.service.health import DocumentHealth
from toolscript.service.knowledge import knowledge_search
from toolscript.service.parts import open_embedder
from toolscript.service.seeing import UNSEEN
from toolscript.service.serving import answer
from toolscript.service.tenancy import USUAL_PLAN, Tenancy, token_rules
from toolscript.settings.service import Settings, load_settings
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.surfaces.logs import configure_logs
from toolscript.surfaces.loopback import is_loopback_host
from toolscript.sync.documents import DocumentDesk
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryRequestBudget, MemoryTenants

TENANT = Tenant("demo")
ISSUER = "toolscript-demo"
TOKEN_HOURS = 24.0
# So many that hardly any two words point the same way.
DIMENSIONS = 384
# What of the environment counts here; the rest is about engines and other people.
KEPT = ("host", "port", "embedding_model", "log_level", "log_format")


def serve_demo(*, host: str | None, port: int | None, tell: Callable[[str], None]) -> None:
    """`tell` is given what there is to try, once it answers."""
    settings = demo_settings(load_settings(), host, port)
    configure_logs(settings.log_level, settings.log_format)
    with sockets_of(settings) as shared:
        address = f"http://{settings.host}:{shared[0].getsockname()[1]}"
        common, access, contents = Common("", cursor_secret(settings)), demo_access(settings), read_contents()
        tour = Tour(address, access.token, _model_folder(settings), _counts(contents))
        opening = open_demo(settings, common, access, contents, tour)
        run(answer(settings, common, shared, opening, lambda: tell(tour.text)))


def demo_settings(given: Settings, host: str | None, port: int | None) -> Settings:
    kept = {name: getattr(given, name) for name in KEPT if name in given.model_fields_set}
    kept |= ({"host": host} if host else {}) | ({} if port is None else {"port": port})
    settings = Settings.model_construct(
        None, **{"log_level": "warning", "log_format": "text", "jwt_issuer": ISSUER, **kept}
    )
    if not is_loopback_host(settings.host):
        raise SetupError(
            "the demo listens on this machine alone", hint="leave --host and TOOLSCRIPT_HOST out, or 127.0.0.1"
        )
    return settings


@dataclass(frozen=True)
class DemoAccess:
    """The public half of a key that was made for this run, and the one token it has signed."""

    keys: bytes
    token: str


def demo_access(settings: Settings) -> DemoAccess:
    with tempfile.TemporaryDirectory() as folder:
        files = make_keys(Path(folder))
        token = sign_token(files.private, token_rules(settings), TENANT, hours=TOKEN_HOURS)
        return DemoAccess(files.public.read_bytes(), token)


class KeptKeys:
    """A key set that is read from memory."""

    fresh_seconds = grace_seconds = pause_seconds = 3600.0

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        return self._data


@asynccontextmanager
async def open_demo(
    settings: Settings, common: Common, access: DemoAccess, contents: DemoContents, tour: Tour
) -> AsyncIterator[FastAPI]:
    async with (
        _embedder(settings) as embedder,
        _tenancy(settings, access) as tenancy,
        admission_of(settings, UNSEEN).adapting() as admission,
    ):
        stores = memory_stores()
        opened = await filled_catalog(settings, stores, embedder, contents.items)
        library = await filled_library(settings, embedder, contents.library)
        behind = Behind(
            stores,
            embedder,
            opened,
            tool_search(settings, embedder, opened, stores, UNSEEN, admission),
            await _documents(settings, common, embedder, tenancy, contents),
            knowledge_search(settings, library.indexes, embedder, library.reader, UNSEEN),
        )
        async with assembled(settings, common, behind, tenancy, UNSEEN, admission) as app:
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
    """Empty where none is named: a model with another name would have to be downloaded."""
    return settings.embedding_model if model_folder(settings.embedding_model) else ""


@asynccontextmanager
async def _tenancy(settings: Settings, access: DemoAccess) -> AsyncIterator[Tenancy]:
    plan = Plan(USUAL_PLAN)
    keys = KeyRing(KeptKeys(access.keys))
    try:
        callers = JwtCallers(keys, token_rules(settings), {plan.name: plan}, plan)
        yield Tenancy(callers, MemoryRequestBudget(), MemoryTenants(), plan, debug_bypass=False)
    finally:
        await keys.close()


async def _documents(
    settings: Settings, common: Common, embedder: Embedder, tenancy: Tenancy, contents: DemoContents
) -> DocumentRoutes:
    index = MemoryDocuments(DocumentCard(embedder.model))
    search = DocumentSearch(
        embedder,
        index,
        spans=UNSEEN.spans_of("documents"),
        cursor_secret=common.cursor_secret,
        deadline_seconds=settings.deadline_seconds,
    )
    desk = DocumentDesk(embedder, index, tenancy.tenants)
    await desk.put(Caller(TENANT), contents.documents)
    health = DocumentHealth(embedder, index).check
    return document_routes(search, desk, health, tenancy, UNSEEN, settings.search_type)


def _counts(contents: DemoContents) -> dict[str, int]:
    return {
        "tools, prompts and resources": len(contents.items),
        "documents of one tenant": len(contents.documents),
        "sources of a library": len(contents.library),
    }
