"""An installation with documents of tenants, and `toolscript tenants` run on it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.conftest import Installation
from tests.e2e import commands
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.qdrant.connection import Qdrant
from toolscript.documents.model.document import Document
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.postgres import PostgresTenants
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.service import DocumentService
from toolscript.server.document_index import document_layout
from toolscript.server.stores import connect_qdrant
from toolscript.testing import HashEmbedder

T = TypeVar("T")

LONG = " ".join(f"Line {number} of the log of the harbour master." for number in range(60))


@dataclass(frozen=True)
class Engines:
    """PostgreSQL and Qdrant, and the document index."""

    pool: Pool
    engine: Qdrant
    index: QdrantDocuments

    async def put(self, tenant: str, documents: Sequence[Document]) -> None:
        service = DocumentService(HashEmbedder(), self.index, PostgresTenants(self.pool))
        for start in range(0, len(documents), 64):
            await service.put(Principal(Tenant(tenant)), documents[start : start + 64])


@dataclass(frozen=True)
class Tenants:
    installation: Installation

    def __call__(self, *arguments: str, code: int = 0, standard_input: str = "") -> tuple[str, str]:
        """Run the command; return stdout and stderr."""
        done = commands.run_here(
            self.installation.environment, "tenants", *arguments, code=code, standard_input=standard_input
        )
        return done.stdout, done.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code)[0])

    def put(self, tenant: str, documents: Sequence[Document]) -> None:
        self.on_engines(lambda engines: engines.put(tenant, documents))

    def on_engines(self, action: Callable[[Engines], Awaitable[T]]) -> T:
        async def act() -> T:
            settings = self.installation.settings
            url = settings.postgres_url.get_secret_value()
            async with open_pool(url, size=2) as pool, connect_qdrant(settings) as engine:
                index = await open_documents(
                    engine,
                    settings.qdrant_documents_alias,
                    DocumentCard(HashEmbedder().model),
                    document_layout(settings),
                )
                return await action(Engines(pool, engine, index))

        return asyncio.run(act())


def documents(count: int, *, about: str = "ships") -> list[Document]:
    """Documents of one chunk and of several, with metadata of every kind."""
    return [
        Document(
            f"{about}/{number}",
            f"{about} number {number}, ünïcödé ☃. {LONG if number % 3 == 0 else ''}".strip(),
            {"number": number, "tags": [about, "sea"], "author": {"name": "Ann"}, "draft": number % 2 == 0},
        )
        for number in range(count)
    ]
