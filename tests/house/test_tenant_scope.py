"""No request about documents leaves for the engine without its tenant.

Said of the code by reading it, and of the requests by looking at each one that is sent.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.contracts.document_scenes import ANN, document, key, must
from tests.contracts.scenes import terms
from tests.house.sources import PACKAGE, Function, functions, modules, name_of
from toolscript.adapters import qdrant
from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant
from toolscript.adapters.qdrant.documents.payload import TENANT
from toolscript.adapters.qdrant.documents.tenant_points import Query, Span, TenantPoints
from toolscript.model.document_cards import DocumentCard
from toolscript.model.document_points import IndexedDocument, PassageAsk, PassageId
from toolscript.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.ports import TenantDocuments
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("DOC-004")

DOCUMENTS = name_of(PACKAGE / "adapters" / "qdrant" / "documents")
SCOPED = f"{DOCUMENTS}/tenant_points.py"
# Of the collection as a whole, and none of them answers with a point: indexes of fields, and whether it is empty.
OF_NOBODY = {(f"{DOCUMENTS}/collection.py", "CreateFieldIndex"), (f"{DOCUMENTS}/places.py", "Count")}
# Benches, on collections of their own; the index of tools, which has no tenants.
OTHERS = ("src/toolscript/service/bare_", "src/toolscript/service/bench_", "src/toolscript/adapters/qdrant/")


class Recorder:
    """Hands requests on to the engine, or to nobody, and keeps them."""

    def __init__(self, points: Any) -> None:
        self._points = points
        self.sent: list[tuple[str, Any]] = []

    def __getattr__(self, method: str) -> Any:
        async def call(request: Any, **more: Any) -> Any:
            self.sent.append((method, request))
            return await getattr(self._points, method)(request, **more)

        return call


class Silent:
    """An engine that has nothing."""

    def __getattr__(self, method: str) -> Any:
        async def call(request: Any, **_: Any) -> Any:
            if method == "QueryBatch":
                return wire.QueryBatchResponse(result=[wire.BatchResult() for _ in request.query_points])
            return {"Scroll": wire.ScrollResponse, "Count": wire.CountResponse}.get(
                method, wire.PointsOperationResponse
            )()

        return call


def asks_for_points() -> Iterator[tuple[str, str]]:
    """Files that use the engine's service of points, and the method; empty where that is chosen later."""
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_points(node.value) and node.attr[0].isupper():
                yield name, node.attr
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and _is_points(node.args[0]):
                yield name, ""


def _is_points(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "points"


def test_only_one_file_asks_the_engine_about_points_of_documents() -> None:
    found = set(asks_for_points())
    of_documents = {one for one in found if one[0].startswith(f"{DOCUMENTS}/")}
    assert of_documents - OF_NOBODY == {(SCOPED, "")}
    elsewhere = found - of_documents
    assert [one for one in elsewhere if not one[0].startswith(OTHERS)] == []
    assert elsewhere, "the index of tools asks, or this test looks for the wrong thing"


def test_every_method_that_sends_a_request_puts_the_tenant_into_it() -> None:
    tree = next(tree for name, tree in modules() if name == SCOPED)
    senders = [one for one in functions(tree) if _calls(one, "_call")]
    assert [one.name for one in senders if not _calls(one, "_own")] == []
    assert {one.name for one in senders} >= {"query", "scroll", "count", "put", "replace", "remove"}


def _calls(function: Function, method: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == method for node in ast.walk(function))


def is_of(tenant: str, where: Any) -> bool:
    """Whether nothing but this tenant's can pass, whatever else is asked for."""
    own = wire.Condition(field=wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant)))
    return own in where.must


def filters_of(method: str, request: Any) -> list[Any]:
    match method:
        case "QueryBatch":
            return [one.filter for one in request.query_points]
        case "Scroll" | "Count":
            return [request.filter]
        case "Upsert":
            return [request.update_filter]
        case "Delete":
            return [request.points.filter]
        case "UpdateBatch":
            return [_filter_of_operation(one) for one in request.operations]
    raise AssertionError(f"what of a {method} says whose it is?")


def _filter_of_operation(operation: Any) -> Any:
    if operation.HasField("upsert"):
        return operation.upsert.update_filter
    return operation.delete_points.points.filter


def unscoped(sent: list[tuple[str, Any]], tenant: str) -> list[str]:
    found = []
    for method, request in sent:
        if not all(is_of(tenant, where) for where in filters_of(method, request)):
            found.append(f"{method}: {request}")
        if method == "Upsert" and any(point.payload[TENANT].string_value != tenant for point in request.points):
            found.append(f"put for another: {request}")
    return found


def long(version: int, passages: int, replaces: int = 0) -> IndexedDocument:
    """Its vectors are as long as those of the fixture's collection."""
    texts = [f"red fox number {number}" for number in range(passages)]
    made = document("long", *texts, version=version, metadata={"tenant": "bob", "n": 1}, replaces=replaces)
    vector = HashEmbedder()._embed("red fox")
    return replace(made, passages=[replace(one, vector=vector) for one in made.passages])


async def exercise(shelf: TenantDocuments) -> set[str]:
    """Everything that can be done; answers the names of what was."""
    hostile = Filters(should=(FieldCondition.of("tenant", "eq", "bob"), FieldCondition.of("n", "exists", False)))
    await shelf.put([long(1, 3)])
    await shelf.put([long(2, 1, replaces=3)])
    for filters in (NO_FILTERS, must("tenant", "eq", "bob"), hostile):
        await shelf.search(PassageAsk(HashEmbedder()._embed("fox"), terms("red"), filters))
        await shelf.count(filters)
        await shelf.page("", 10, filters)
    await shelf.page(key("long"), 10, NO_FILTERS)
    await shelf.statistics()
    await shelf.headers([key("long")])
    await shelf.passages([PassageId(key("long"), 0)])
    await shelf.remove([key("long")])
    await shelf.erase()
    return {"put", "search", "count", "page", "statistics", "headers", "passages", "remove", "erase"}


async def test_every_request_that_is_sent_names_its_tenant(qdrant_documents: qdrant.QdrantDocuments) -> None:
    recorder = Recorder(qdrant_documents._qdrant.points)
    engine = replace(qdrant_documents._qdrant, points=recorder)
    card = DocumentCard(HashEmbedder().model)
    index = qdrant.QdrantDocuments(engine, qdrant_documents.collection, card, qdrant.DocumentLayout())
    done = await exercise(index.of(ANN))
    assert done == {name for name in vars(TenantDocuments) if not name.startswith("_")} - {"tenant"}
    assert {method for method, _ in recorder.sent} == {
        "QueryBatch",
        "Scroll",
        "Count",
        "Upsert",
        "UpdateBatch",
        "Delete",
    }
    assert unscoped(recorder.sent, "ann") == []
    assert unscoped(recorder.sent, "bob") != []
    # The engine keeps a record of every write, and of such a one it can never read it again.
    written = [str(request) for method, request in recorder.sent if method in ("Upsert", "UpdateBatch", "Delete")]
    assert [one for one in written if "has_id" in one] == []


async def test_in_a_cluster_every_request_names_the_shards_of_its_tenant_too() -> None:
    recorder = Recorder(Silent())
    engine = Qdrant(points=recorder, collections=None, timeout_seconds=1.0)
    points = TenantPoints(engine, "anything", ANN, shards=4)
    nearest = wire.VectorInput(dense=wire.DenseVector(data=[1.0]))
    await points.query([Query("dense", nearest, wire.Filter(), 10)] * 2)
    await points.scroll(wire.Filter(), 10)
    await points.whole(wire.Filter(), 10)
    await points.count(wire.Filter(), exact=True)
    await points.put([wire.PointStruct()], 1)
    await points.replace([wire.PointStruct()], 1)
    await points.remove_versions([Span([PassageId(key("long"), 0)], 0, 1)])
    await points.remove(wire.Filter())
    requests = [one for _, request in recorder.sent for one in _parts(request)]
    assert {one.shard_key_selector.shard_keys[0].keyword for one in requests} == {"own_ann"}
    assert len({one.shard_key_selector.fallback.keyword for one in requests}) == 1
    assert requests[0].shard_key_selector.fallback.keyword.startswith("shared_")
    assert unscoped(recorder.sent, "ann") == []


def _parts(request: Any) -> list[Any]:
    """What names a shard each."""
    operations = getattr(request, "operations", [])
    parts = [one.upsert if one.HasField("upsert") else one.delete_points for one in operations]
    return parts or list(getattr(request, "query_points", [request]))
