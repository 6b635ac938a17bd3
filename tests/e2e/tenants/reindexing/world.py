"""Tenants with many short documents, some of them never written again, and the expected final state."""

import random
from dataclasses import dataclass, field

from tests.repo.shell_pages import ROOT
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.settings.service import Settings
from toolscript.documents.model.document import Document
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.postgres import PostgresTenants
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantExport
from toolscript.server.document_index import open_index
from toolscript.server.stores import open_embedder, open_stores

WORDS_EACH = 25
STILL_EVERY = 5
PUT_AT_ONCE = 200


def vocabulary() -> list[str]:
    text = "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    return sorted({word for word in text.lower().split() if word.isalpha()})


@dataclass
class World:
    """`texts`: expected documents of every tenant, by id."""

    tenants: list[str]
    each: int
    seed: int = 0
    words: list[str] = field(default_factory=vocabulary)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        for tenant in self.tenants:
            self.texts[tenant] = {f"d{number}": self.text() for number in range(self.each)}

    def text(self) -> str:
        return " ".join(self.chance.choices(self.words, k=WORDS_EACH))

    @property
    def still(self) -> list[str]:
        return self.tenants[::STILL_EVERY]

    @property
    def busy(self) -> list[str]:
        return [name for number, name in enumerate(self.tenants) if number % STILL_EVERY]

    async def load(self, settings: Settings) -> None:
        async with open_stores(settings) as stores, open_embedder(settings) as embedder:
            index = await open_index(settings, stores.qdrant, embedder.model)
            service = DocumentService(embedder, index, PostgresTenants(stores.pool))
            for number, (tenant, texts) in enumerate(self.texts.items()):
                documents = [Document(id_, text, {"n": number}) for id_, text in texts.items()]
                for start in range(0, len(documents), PUT_AT_ONCE):
                    await service.put(Principal(Tenant(tenant)), documents[start : start + PUT_AT_ONCE])

    async def wrong_in(self, index: DocumentIndex) -> list[str]:
        """Return missing, unexpected and different documents."""
        wrong = list[str]()
        for tenant, texts in self.texts.items():
            export = TenantExport(index.of(Tenant(tenant)))
            result = {document.id: document.text async for document in export.documents()}
            wrong += [
                f"{tenant}: {id_}" for id_ in texts.keys() | result.keys() if texts.get(id_) != result.get(id_)
            ]
        return wrong


async def differing(one: DocumentIndex, other: DocumentIndex, tenants: list[str]) -> list[str]:
    """Compare points: return documents whose version or chunks differ."""
    result = list[str]()
    for name in tenants:
        write_context = one.of(Tenant(name)), other.of(Tenant(name))
        states = []
        for shelf in write_context:
            state, after = dict[str, object](), ""
            while page := await shelf.page(after, PUT_AT_ONCE, NO_FILTERS):
                batches = TenantExport(shelf)
                for header, document in await batches.of_headers(page):
                    state[header.id] = (header.version, header.passages, header.complete, document.text)
                state |= dict.fromkeys(batches.left_out, "torn")
                after = page[-1].key
            states.append(state)
        before, after_ = states
        result += [f"{name}: {id_}" for id_ in before.keys() | after_.keys() if before.get(id_) != after_.get(id_)]
    return result
