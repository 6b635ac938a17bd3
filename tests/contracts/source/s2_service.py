"""`toolscript serve` on the real engines with tenants' tokens, and a recording embeddings endpoint."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from tests.conftest import fresh_database, fresh_installation
from tests.e2e.commands import run_here
from tests.e2e.tenants.service import SOON, Service
from tests.support.reserved_ports import reserved_port
from tests.support.token_issuer import Issuer, an_issuer
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from toolscript.core.settings.service import Settings
from toolscript.testing import HashEmbedder

DIMENSIONS = 64

Json = dict[str, Any]

LEASE = {
    "id": "lease",
    "text": "The lease of the harbour ends in May, and the harbour is cleaned before.",
    "metadata": {"title": "Lease", "path": "law/lease.md", "tags": ["contract"], "year": 2021},
}
VERDICT = {
    "id": "verdict",
    "text": "The court has ruled: whoever owns the harbour pays the tax.",
    "metadata": {"title": "Verdict", "path": "law/verdict.md", "tags": ["ruling", "tax"], "year": 2022},
}
BREAD = {
    "id": "bread",
    "text": "Bread is baked with little yeast and the tax of patience.",
    "metadata": {"title": "Bread", "path": "kitchen/bread.md", "tags": ["kitchen"], "year": 2023},
}
COAST = {
    "id": "coast",
    "text": "\n\n".join(f"{word} " * 200 for word in ("tide", "lighthouse", "gull")),
    "metadata": {"path": "coast.txt", "year": 2024},
}
LIBRARY = (LEASE, VERDICT, BREAD, COAST)


@dataclass(frozen=True)
class Running:
    url: str
    issuer: Issuer
    endpoint: EmbeddingEndpoint
    environment: Mapping[str, str]
    log: Path

    def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        return httpx2.request(
            method, self.url + path, json=body, headers=headers or {}, timeout=SOON, trust_env=False, verify=False
        )

    def as_tenant(self, name: str = "acme", **claims: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.issuer.token(name, **claims)}"}

    def put(self, *documents: Json, tenant: str = "acme") -> None:
        output = self.send("PUT", "/documents", {"documents": documents}, self.as_tenant(tenant)).json()
        assert [result["status"] for result in output["results"]] == ["created"] * len(documents), output

    def search(self, asked: Json, tenant: str = "acme", status: int = 200) -> Json:
        answer = self.send("POST", "/search", asked, self.as_tenant(tenant))
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    def found(self, asked: Json, tenant: str = "acme") -> list[str]:
        return [hit["doc_id"] for hit in self.search(asked, tenant)["hits"]]

    def lines(self) -> list[Json]:
        """Return the lines of the log; each must be JSON."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


@contextmanager
def running(engines: Settings, database: str, folder: Path, **settings: str) -> Iterator[Running]:
    issuer, log = an_issuer(), folder / "log"
    with (
        fresh_database(engines, database) as catalog,
        fresh_installation(engines, catalog, "words") as fresh,
        EmbeddingEndpoint(DIMENSIONS) as endpoint,
        reserved_port() as port,
        log.open("w+b") as written,
    ):
        value = {
            **fresh.environment,
            "TOOLSCRIPT_JWT_KEYS": str(issuer.write(folder / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": issuer.name,
            "TOOLSCRIPT_EMBEDDING_URL": endpoint.url,
            "TOOLSCRIPT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            **settings,
        }
        # `serve` needs the index of tools, too.
        run_here(value, "worker", "--drain")
        service = Service(f"http://127.0.0.1:{port}", port, value, log=written)
        try:
            service.start()
            yield Running(service.url, issuer, endpoint, value, log)
        finally:
            service.stop()


async def cosine_of_best(query: str, passages: Sequence[str]) -> float:
    """Return the cosine of the best chunk, by the vectors of the endpoint."""
    vectors = await HashEmbedder(dimensions=DIMENSIONS).embed_texts([query, *passages])
    return float(np.max(vectors[1:] @ vectors[0]))
