"""Documents of a tenant of a service, and the tenants."""

import json
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from toolscript.client.answers.documents import (
    DeleteAnswer,
    Document,
    DocumentListed,
    DocumentSearchAnswer,
    PutAnswer,
    PutCounts,
    PutResult,
    Tenant,
)
from toolscript.client.exchange import LINES, TRANSIENT, Pull, Request, Steps
from toolscript.client.resource import PREFIX, Listing, M_co, Resource, listing, operation, step_of
from toolscript.client.resources.tools import SearchType
from toolscript.core.errors import ToolscriptError, Unavailable

DOCUMENTS, TENANTS = f"{PREFIX}/documents", f"{PREFIX}/tenants"
# Of one request. Larger puts are sent in several.
MAX_IN_REQUEST = 200
MAX_REQUEST_BYTES = 1024 * 1024
MAX_DELETED = 1_000

Fusion = Literal["rrf", "zscore", "best"]
Rerank = Literal["off", "cross_encoder", "llm"]


class Documents(Resource[M_co]):
    @operation
    def put(self, documents: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]) -> Steps[PutAnswer]:
        """Put documents, `{id, text, title?, metadata?}` each, and return what became of them, in their order.

        They are taken from the iterable as they are sent, a few hundred to a request; an `AsyncClient` takes an
        asynchronous one, too. A document that the service refuses has the state `refused` and does not stop the
        others. Documents without a result, because the service went away, are put again.
        """
        results: list[PutResult] = []
        batch, size = list[bytes](), 0
        source = documents.__aiter__() if isinstance(documents, AsyncIterable) else iter(documents)
        while (document := (yield Pull(source))) is not None:
            line = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
            if batch and (len(batch) == MAX_IN_REQUEST or size + len(line) > MAX_REQUEST_BYTES):
                results += yield from self._put_batch(batch)
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        if batch:
            results += yield from self._put_batch(batch)
        states = [result.state for result in results]
        counts = {state: states.count(state) for state in ("created", "updated", "unchanged", "refused")}
        return PutAnswer(results=results, counts=PutCounts(**counts))

    def _put_batch(self, lines: Sequence[bytes]) -> Steps[list[PutResult]]:
        results: dict[int, PutResult] = {}
        tries = 0
        while left := [number for number in range(len(lines)) if number not in results]:
            request = Request("PUT", DOCUMENTS, b"\n".join(lines[number] for number in left), LINES)
            try:
                received, stopped = self._conversation.understand((yield request), _put_results)
            except TRANSIENT as error:
                received, stopped = {}, error
            results |= {left[line - 1]: result for line, result in received.items()}
            # With every result the count begins anew: the service is there, and makes progress.
            tries = 1 if received else tries + 1
            if len(results) < len(lines):
                missing = Unavailable("the service did not return a result for every document")
                yield self._conversation.retries.pause(stopped or missing, tries)
        return [results[number] for number in range(len(lines))]

    @operation
    def search(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        filters: Mapping[str, Any] | None = None,
        search_type: SearchType | None = None,
        fusion: Fusion | None = None,
        rerank: Rerank | None = None,
        include_snippets: bool | None = None,
        snippet_max_chars: int | None = None,
        metadata_fields: Sequence[str] | None = None,
        cursor: str | None = None,
    ) -> Steps[DocumentSearchAnswer]:
        """Search documents by text, by filters on their metadata, or both.

        `cursor="*"` begins a walk over all results; `metadata.next_cursor` of an answer continues it.
        """
        body = {
            "query": query,
            "limit": limit,
            "offset": offset,
            "filters": None if filters is None else dict(filters),
            "search_type": search_type,
            "fusion": fusion,
            "rerank": rerank,
            "include_snippets": include_snippets,
            "snippet_max_chars": snippet_max_chars,
            "metadata_fields": None if metadata_fields is None else list(metadata_fields),
            "cursor": cursor,
        }
        return self._ask("POST", f"{DOCUMENTS}/search", DocumentSearchAnswer, body=body)

    @operation
    def get(self, document_id: str) -> Steps[Document]:
        """Return a document with its text."""
        return self._ask("GET", f"{DOCUMENTS}/{step_of(document_id)}", Document)

    @listing
    def list(
        self, *, filters: Mapping[str, Any] | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[DocumentListed]:
        """List documents without their texts."""
        given = None if filters is None else json.dumps(dict(filters))
        return self._listing(DOCUMENTS, DocumentListed, page_size, cursor, filters=given)

    @operation
    def delete(self, document_ids: str | Iterable[str]) -> Steps[DeleteAnswer]:
        """Delete one document or several, by their ids."""
        ids = [document_ids] if isinstance(document_ids, str) else [*document_ids]
        deleted, missing = list[str](), list[str]()
        for index in range(0, len(ids), MAX_DELETED):
            body = {"ids": ids[index : index + MAX_DELETED]}
            answer = yield from self._ask("POST", f"{DOCUMENTS}/delete", DeleteAnswer, body=body)
            deleted += answer.deleted
            missing += answer.missing
        return DeleteAnswer(deleted=deleted, missing=missing)


class Tenants(Resource[M_co]):
    @listing
    def list(self, *, page_size: int | None = None, cursor: str = "") -> Listing[Tenant]:
        """List the tenants of a service, for its administrator."""
        return self._listing(TENANTS, Tenant, page_size, cursor)

    @operation
    def get(self, name: str) -> Steps[Tenant]:
        """Return a tenant."""
        return self._ask("GET", f"{TENANTS}/{step_of(name)}", Tenant)


def _put_results(body: bytes) -> tuple[dict[int, PutResult], ToolscriptError | None]:
    """Return results by the line of their document, from 1, and the error that ended the request early."""
    *lines, last = _objects(body)
    error = last.get("error")
    stopped = None if error is None else Unavailable(str(error["message"]), hint=_hint(error))
    return {int(line.pop("line")): PutResult.from_json(line) for line in lines}, stopped


def _objects(body: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in body.splitlines())


def _hint(error: Mapping[str, Any]) -> str:
    return str(dict(error.get("details", {})).get("hint", ""))
