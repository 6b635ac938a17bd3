"""The service in memory with a catalog of several namespaces, and real tokens that see some of them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from tests.contracts.search_log_builders import missed
from tests.support.token_issuer import Issuer, an_issuer
from tests.unit.server.mcp.builders import Plain
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED
from toolscript.core.auth.tokens import JwtVerifier
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.curation import Rule, RuleKind
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Classification, Classified, SuggestedSkill
from toolscript.server.demo_contents import memory_stores
from toolscript.server.indexing import worker_of
from toolscript.server.observability import NOT_OBSERVED
from toolscript.server.skills import default_skills
from toolscript.server.stores import CatalogStores
from toolscript.server.tenancy import Tenancy, token_rules
from toolscript.server.wiring import Backends, SharedResources, admission_of, open_api, tool_search
from toolscript.testing import HashEmbedder, MemoryCatalog, MemoryRequestBudget, MemoryTenants
from toolscript.tools.catalog.items import import_items
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing.versions import Readable, open_for_writing
from toolscript.tools.skills.importing import load_defaults

ALPHA, BETA = "team-alpha", "team-beta"
ADMIN_TOKEN = "admins-own-token-of-this-test"
READ, MANAGE = "tools:read", "tools:read tools:manage"
# A part of every word that is planted in one namespace and must show nowhere else.
CANARY = "kanarienvogel"

Json = dict[str, Any]

# Anybody may read, as often as a test does.
PUBLIC = {"public_scopes": "knowledge:read tools:read", "public_requests_per_minute": 0}


# Different enough that no two items of a namespace have equal scores, whose order an engine chooses.
KINDS = {
    "mail": "Send an email message to a person",
    "file": "Read the text of a file from the disk, line by line or as a whole",
    "meeting": "Schedule a meeting",
    "query": "Query a relational database with SQL and return its rows as JSON objects",
    "image": "Resize an image to a width and a height in pixels",
    "letter": "Send a letter by mail, with postage, to a customer of the company",
}


def items_of(word: str) -> list[Item]:
    """Return items that mention the word everywhere, each in its own number."""
    return [
        Item(
            key=f"{word}-{number}",
            kind=ItemKind.TOOL,
            server=f"{word}haus",
            name=f"{word}_{name}",
            description=f"{what}, {' '.join([word] * (number + 1))} {word}{number}",
            input_schema={"type": "object", "properties": {f"{word}_argument": {"type": "string"}}},
        )
        for number, (name, what) in enumerate(KINDS.items())
    ]


async def plant(stores: CatalogStores, namespace: str, word: str, reviewer: str) -> None:
    """Fill one namespace with all that a catalog can have: items, changes, decisions, a rule, searches."""
    catalog, source = stores.catalog.of(namespace), f"{word}-source"
    items = items_of(word)
    await import_items(catalog, source, items)
    changed = [replace(item, description=f"Send a {word} email to a person") for item in (items[0], items[3])]
    await import_items(catalog, source, changed)
    stored = {item.item.key: item for item in await _stored(stores) if item.namespace == namespace}
    await stores.assignments.set_by_hand(stored[f"{word}-1"].id, ["file_operations"], reviewer)
    asking = stored[f"{word}-2"]
    suggested = Classification(suggestion=SuggestedSkill(f"{word} keeping", f"All about {word}"))
    await stores.assignments.record([Classified(asking.id, asking.version, suggested, namespace)])
    means = Rule(RuleKind.SYNONYM, "email", means=f"{word} letter")
    await stores.curation.add(means, reviewer, namespace)
    number = stored[f"{word}-0"].id
    asked = missed(number, f"email the {word}", namespaces=(namespace,), tool_id=number)
    with_others = missed(number + 1, f"email the {word}s", namespaces=(ALPHA, namespace), unmatched=(word,))
    await stores.searches.write([asked, with_others])


async def _stored(stores: CatalogStores) -> Sequence[Any]:
    ids = [point.id for point in await stores.catalog.scan(0, 10_000)]
    return await stores.catalog.items(ids)


def memory_catalog() -> CatalogStores:
    stores = memory_stores()
    assert isinstance(stores.catalog, MemoryCatalog)
    stores.catalog.hold_changes = True
    return stores


async def indexed(stores: CatalogStores, embedder: Embedder) -> Readable:
    opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(embedder.model))
    await worker_of(stores, embedder, RulesClassifier(embedder), opened).drain()
    return Readable(opened.index, opened.skills)


@dataclass(frozen=True)
class Client:
    """A client of the service with a token, or without one."""

    http: httpx2.AsyncClient
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def ask(self, method: str, path: str, json: object = None) -> httpx2.Response:
        return await self.http.request(method, path, json=json, headers=self.headers)

    async def got(self, path: str) -> Any:
        answer = await self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def names(self, path: str) -> set[str | None]:
        """Return the namespaces of a list's entries."""
        return {entry["namespace"] for entry in (await self.got(path))["results"]}

    async def until_over(self, job_id: int) -> Json:
        async with asyncio.timeout(60):
            while True:
                job: Json = await self.got(f"/api/v1/jobs/{job_id}")
                if job["state"] not in ("queued", "running"):
                    return job
                await asyncio.sleep(0.01)

    @property
    def mcp(self) -> Plain:
        return Plain(self.http, self.headers)


@dataclass(frozen=True)
class Service:
    app: FastAPI
    http: httpx2.AsyncClient
    stores: CatalogStores

    def client(self, namespaces: object = None, scope: str | None = READ) -> Client:
        """Return a client whose token has this claim; None leaves the claim out."""
        return Client(self.http, an_issuer().token("acme", namespaces=namespaces, scope=scope))

    @property
    def admin(self) -> Client:
        return Client(self.http, ADMIN_TOKEN)

    @property
    def anonymous(self) -> Client:
        return Client(self.http)


@asynccontextmanager
async def serving(
    folder: Path, stores: CatalogStores, *, local: bool = False, **more: object
) -> AsyncIterator[Service]:
    """Serve a catalog in memory, wired as the service is. `more` are settings.

    `local`: clients are on this machine, and there is no admin token.
    """
    token = {} if local else {"admin_token": ADMIN_TOKEN}
    settings = Settings.model_validate(
        {"jwt_keys": "keys.json", "jwt_issuer": Issuer.name, **PUBLIC, **token, **more}
    )
    embedder = HashEmbedder(dimensions=64)
    keys = KeyRing(KeyFile(an_issuer().write(folder / "keys.json")))
    verifier = JwtVerifier(keys, token_rules(settings), {}, UNLIMITED)
    tenancy = Tenancy(verifier, MemoryRequestBudget(), MemoryTenants(), UNLIMITED, debug_bypass=False)
    async with admission_of(settings, NOT_OBSERVED).adapting() as admission:
        opened = await indexed(stores, embedder)
        tools = tool_search(settings, embedder, opened, stores, NOT_OBSERVED)
        behind = Backends(stores, embedder, opened, tools, None, None)
        common = SharedResources("", b"secret")
        async with open_api(settings, common, behind, tenancy, NOT_OBSERVED, admission) as app:
            transport = httpx2.ASGITransport(app, client=("127.0.0.1" if local else "203.0.113.7", 1234))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as http:
                yield Service(app, http, stores)


@asynccontextmanager
async def planted(folder: Path, *words: tuple[str, str], **more: Any) -> AsyncIterator[Service]:
    """Serve a catalog with these namespaces, each with its word. Ids do not depend on those that follow."""
    stores = memory_catalog()
    await load_defaults(stores.taxonomy, default_skills())
    for namespace, word in words:
        await plant(stores, namespace, word, f"{word}-reviewer")
    async with serving(folder, stores, **more) as service:
        await run_jobs(service, *words)
        yield service


async def run_jobs(service: Service, *words: tuple[str, str]) -> None:
    """Run a job in each namespace, whose source has the word."""
    for namespace, word in words:
        job = {"source": f"{word}-job", "items": [], "namespace": namespace}
        started = await service.admin.ask("POST", "/api/v1/jobs", job)
        assert started.status_code == 202, started.text
        await service.admin.until_over(started.json()["id"])
