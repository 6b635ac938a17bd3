"""The HTTP API of documents in this process, asked as any client asks it."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
from fastapi import FastAPI

from toolscript.errors import SetupError
from toolscript.model.tenancy import Tenant
from toolscript.surfaces.http.callers import BYPASS, BYPASS_TENANT
from toolscript.surfaces.http.documents import LARGER_REQUESTS, DocumentRoutes, document_routes
from toolscript.surfaces.http.errors import install_error_handlers
from toolscript.surfaces.request_context import RequestContext

LINES = "application/x-ndjson"
ANSWER_SECONDS = 600.0


class DocumentsOverHttp:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None:
        body = "".join(json.dumps(one) + "\n" for one in documents)
        answer = await self._client.put("/documents", content=body.encode(), headers={"Content-Type": LINES})
        if answer.status_code != httpx2.codes.OK:
            raise _refused(answer)
        wrong = next((line for line in map(json.loads, answer.text.splitlines()) if "error" in line), None)
        if wrong:
            raise SetupError(f"not all documents were taken: {wrong['error']}")

    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> list[str]:
        asked = {"query": query, "top_k": top_k, "include_snippets": False, "metadata_fields": [], **way}
        answer = await self._client.post("/search", json=asked)
        if answer.status_code != httpx2.codes.OK:
            raise _refused(answer)
        told = answer.json()
        if told["degraded"]:
            raise SetupError(
                f"a part failed while it was measured: {', '.join(told['degraded'])}", hint="try again"
            )
        return [hit["doc_id"] for hit in told["hits"]]


@asynccontextmanager
async def documents_over_http(routes: DocumentRoutes, tenant: Tenant) -> AsyncIterator[DocumentsOverHttp]:
    """As this tenant. The bypass has to be allowed."""
    app = FastAPI()
    app.include_router(document_routes(routes))
    install_error_handlers(app)
    app.add_middleware(RequestContext, larger=LARGER_REQUESTS)
    transport = httpx2.ASGITransport(app=app)
    headers = {BYPASS: "1", BYPASS_TENANT: tenant.name}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://toolscript", headers=headers, timeout=ANSWER_SECONDS
    ) as client:
        yield DocumentsOverHttp(client)


def _refused(answer: httpx2.Response) -> SetupError:
    return SetupError(f"the API answered {answer.status_code}: {answer.text[:500]}")
