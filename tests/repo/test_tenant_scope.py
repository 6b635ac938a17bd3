"""No request about documents reaches the engine without its tenant.

Checked on the syntax trees of the code, and on every request that is sent.
"""

import ast
import inspect
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.contracts.builders import terms
from tests.contracts.document_builders import ANN, document, key, must
from tests.repo.sources import PACKAGE, modules, name_of
from toolscript.core.qdrant import wire
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.documents.model.points import ChunkQuery, DocumentCard, IndexedDocument
from toolscript.documents.ports import TenantDocuments
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.tenant_points import TENANT, TenantPoints
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("DOC-004")

DOCUMENTS = name_of(PACKAGE / "documents" / "qdrant")
SCOPED = f"{DOCUMENTS}/tenant_points.py"
# Methods on the whole collection that return no points: field indexes, and counts.
OF_NOBODY = {
    (f"{DOCUMENTS}/collection.py", "CreateFieldIndex"),
    (f"{DOCUMENTS}/collection.py", "Count"),
    (f"{DOCUMENTS}/shards.py", "Count"),
}
WRITES = {"Upsert", "UpdateBatch"}
# The index of tools, which has no tenants.
OTHERS = ("src/toolscript/core/qdrant/",)


class Recorder:
    """Records every request with our calling methods, and forwards it to a single-node engine."""

    def __init__(self, points: Any) -> None:
        self._points = points
        self.sent: list[tuple[str, Any]] = []
        self.makers: set[str] = set()

    def __getattr__(self, method: str) -> Any:
        async def call(request: Any, **more: Any) -> Any:
            self.sent.append((method, request))
            self.makers |= {frame.name for frame in traceback.extract_stack() if frame.filename.endswith(SCOPED)}
            return await getattr(self._points, method)(_without_shards(request), **more)

        return call


def _without_shards(request: Any) -> Any:
    sent = type(request)()
    sent.CopyFrom(request)
    for part in _parts(sent):
        part.ClearField("shard_key_selector")
    return sent


def _parts(request: Any) -> list[Any]:
    """Return the parts of a request that name a shard."""
    operations = getattr(request, "operations", [])
    parts = [
        operation.upsert if operation.HasField("upsert") else operation.delete_points for operation in operations
    ]
    return parts or list(getattr(request, "query_points", [request]))


def asks_for_points() -> Iterator[tuple[str, str]]:
    """Yield files that use the engine's points service, with the method; empty if it is dynamic."""
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_points(node.value) and node.attr[0].isupper():
                yield name, node.attr
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and _is_points(node.args[0]):
                yield name, ""


def _is_points(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "points"


def test_only_one_file_sends_requests_about_points_of_documents() -> None:
    result = set(asks_for_points())
    of_documents = {item for item in result if item[0].startswith(f"{DOCUMENTS}/")}
    assert of_documents - OF_NOBODY == {(SCOPED, "")}
    elsewhere = result - of_documents
    assert [item for item in elsewhere if not item[0].startswith(OTHERS)] == []
    assert elsewhere, "the index of tools asks, or this test looks for the wrong thing"


def is_of(tenant: str, where: Any) -> bool:
    """Return whether the filter admits only points of this tenant."""
    own = wire.Condition(field=wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant)))
    return own in where.must


def filters_of(method: str, request: Any) -> list[Any]:
    match method:
        case "QueryBatch":
            return [item.filter for item in request.query_points]
        case "Scroll" | "Count":
            return [request.filter]
        case "Upsert":
            return [request.update_filter]
        case "Delete":
            return [request.points.filter]
        case "UpdateBatch":
            return [_filter_of_operation(item) for item in request.operations]
    raise AssertionError(f"what of a {method} says whose it is?")


def _filter_of_operation(operation: Any) -> Any:
    if operation.HasField("upsert"):
        return operation.upsert.update_filter
    return operation.delete_points.points.filter


def unscoped(sent: list[tuple[str, Any]], tenant: str) -> list[str]:
    result = []
    for method, request in sent:
        if not all(is_of(tenant, where) for where in filters_of(method, request)):
            result.append(f"{method}: {request}")
        written = [point for part in _parts(request) if hasattr(part, "update_filter") for point in part.points]
        if any(point.payload[TENANT].string_value != tenant for point in written):
            result.append(f"put for another: {request}")
    return result


def long(version: int, passages: int, replaces: int = 0) -> IndexedDocument:
    """Return a document whose vectors have the dimensions of the fixture's collection."""
    texts = [f"red fox number {number}" for number in range(passages)]
    made = document("long", *texts, version=version, metadata={"tenant": "bob", "n": 1}, replaces=replaces)
    vector = HashEmbedder()._embed("red fox")
    return replace(made, passages=[replace(passage, vector=vector) for passage in made.passages])


async def exercise(shelf: TenantDocuments) -> set[str]:
    """Call every method; return their names."""
    hostile = Filters(should=(FieldCondition.of("tenant", "eq", "bob"), FieldCondition.of("n", "exists", False)))
    await shelf.put([long(1, 3)])
    await shelf.put([long(2, 1, replaces=3)])
    await shelf.restore([long(3, 2)])
    for filters in (NO_FILTERS, must("tenant", "eq", "bob"), hostile):
        await shelf.search(ChunkQuery(HashEmbedder()._embed("fox"), terms("red"), filters))
        await shelf.count(filters)
        await shelf.page("", 10, filters)
    await shelf.page(key("long"), 10, NO_FILTERS)
    await shelf.statistics()
    await shelf.headers([key("long")])
    await shelf.passages([ChunkId(key("long"), 0)])
    await shelf.vectors([ChunkId(key("long"), 0)])
    await shelf.shown([ChunkId(key("long"), 0)])
    await shelf.remove([key("long")])
    await shelf.erase()
    return {
        "put",
        "restore",
        "search",
        "count",
        "page",
        "statistics",
        "headers",
        "passages",
        "vectors",
        "shown",
        "remove",
        "erase",
    }


async def test_every_request_that_is_sent_names_its_tenant_and_its_shards(
    qdrant_documents: QdrantDocuments,
) -> None:
    recorder = Recorder(qdrant_documents._qdrant.points)
    engine = replace(qdrant_documents._qdrant, points=recorder)
    card = DocumentCard(HashEmbedder().model)
    index = QdrantDocuments(engine, qdrant_documents.collection, card, DocumentLayout(shards=4))
    done = await exercise(index.of(ANN))
    await TenantPoints(engine, qdrant_documents.collection, ANN, 4).whole(wire.Filter(), 10)
    assert done == {name for name in vars(TenantDocuments) if not name.startswith("_")} - {"tenant"}
    senders = {name for name, made in vars(TenantPoints).items() if inspect.iscoroutinefunction(made)}
    assert senders <= recorder.makers, "not all that sends requests was seen to"
    assert unscoped(recorder.sent, "ann") == []
    assert unscoped(recorder.sent, "bob") != []
    shards = [part.shard_key_selector for _, request in recorder.sent for part in _parts(request)]
    assert {shard.shard_keys[0].keyword for shard in shards} == {"own_ann"}
    assert len(shared := {shard.fallback.keyword for shard in shards}) == 1
    assert shared.pop().startswith("shared_")


async def test_no_write_chooses_among_ids_by_a_filter(qdrant_documents: QdrantDocuments) -> None:
    """The engine logs every write, and cannot replay such a one."""
    recorder = Recorder(qdrant_documents._qdrant.points)
    engine = replace(qdrant_documents._qdrant, points=recorder)
    card = DocumentCard(HashEmbedder().model)
    index = QdrantDocuments(engine, qdrant_documents.collection, card, DocumentLayout())
    await exercise(index.of(ANN))
    written = [str(request) for method, request in recorder.sent if method in {*WRITES, "Delete"}]
    assert written
    assert [item for item in written if "has_id" in item] == []
