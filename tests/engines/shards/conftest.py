"""A cluster of three nodes, and a documents index on it that is sharded by tenant."""

import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.support.clusters import NODES, Cluster, fresh_cluster
from toolscript.core.auth.model import Tenant
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.shard_migration import MigrationTimeouts, QdrantTenantShards
from toolscript.documents.qdrant.tenant_points import TenantPoints
from toolscript.testing import HashEmbedder

SHARDS = 2
LAYOUT = DocumentLayout(shards=SHARDS, replicas=2)
SOON = MigrationTimeouts(look_seconds=0.05, stalled_seconds=2.0, max_seconds=60.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with fresh_cluster() as started:
        yield started


@dataclass(frozen=True)
class Spread:
    """One collection, opened through each node."""

    nodes: Sequence[Qdrant]
    indexes: Sequence[QdrantDocuments]

    @property
    def collection(self) -> str:
        return self.indexes[0].collection

    def places(self, qdrant: Qdrant | None = None) -> QdrantTenantShards:
        return QdrantTenantShards(qdrant or self.nodes[0], self.collection, LAYOUT, SOON)


@pytest.fixture(scope="module")
async def spread(cluster: Cluster) -> AsyncIterator[Spread]:
    """Open the index; the cluster is removed with all its data."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    card = DocumentCard(HashEmbedder().model)
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(open_qdrant("http://127.0.0.1", cluster.grpc_port(node)))
            for node in NODES
        ]
        yield Spread(nodes, [await open_documents(node, alias, card, LAYOUT) for node in nodes])


def in_shard(spread: Spread, tenant: Tenant, key: wire.ShardKey) -> TenantPoints:
    return TenantPoints(spread.nodes[0], spread.collection, tenant).in_shard(key)
