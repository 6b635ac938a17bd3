"""Duration and memory of a reindex of many documents.

By hand, in a database and under aliases of its own (removed at the end):

    python -m tests.e2e.tenants.reindexing.at_scale --chunks 100000 1000000
"""

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Installation
from tests.e2e.tenants.reindexing.world import WORDS_EACH, World
from tests.e2e.tenants.service import own_installation
from toolscript.core.auth.model import Principal, Tenant
from toolscript.documents.model.document import Document, document_key
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants
from toolscript.documents.qdrant.collection import (
    QdrantDocuments,
    create_documents,
    make_documents_live,
    open_documents,
)
from toolscript.documents.reindex import DocumentCopy, DocumentReindex
from toolscript.documents.service import DocumentService, Indexing, prepared
from toolscript.documents.throttle import Throttle
from toolscript.server.document_index import document_layout
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder

TENANTS, AT_ONCE, LOOK_EVERY_SECONDS = 100, 1_000, 1.0
OLD, NEW = HashEmbedder(), HashEmbedder(name="other")


def resident_mib() -> float:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("this system does not say how much memory a process has")


@contextmanager
def watched() -> Iterator[list[float]]:
    """Sample the resident memory every second."""
    seen, ended = list[float](), threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_SECONDS):
            seen.append(resident_mib())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


async def fill(stores: Stores, index: QdrantDocuments, chunks: int) -> None:
    """Fill with generated words, so that no text is kept in memory."""
    world, indexing = World([], 0), Indexing(OLD)
    service = DocumentService(OLD, index, PostgresTenants(stores.pool))
    for number in range(TENANTS):
        tenant = Tenant(f"t{number:03}")
        # The first document is put through the service, which registers the tenant.
        await service.put(Principal(tenant), [Document("first", world.text(), {})])
        for start in range(1, chunks // TENANTS, AT_ONCE):
            ids = range(start, min(start + AT_ONCE, chunks // TENANTS))
            documents = [Document(f"d{item}", world.text(), {}) for item in ids]
            ready = await prepared({document_key(tenant, item.id): item for item in documents})
            versions = {item.key: 1 for item in ready}
            await index.of(tenant).restore(await indexing.as_of(versions, ready, {}))


async def measure(installation: Installation, chunks: int) -> str:
    settings = installation.settings
    async with open_stores(settings) as stores:
        alias, layout = settings.qdrant_documents_alias, document_layout(settings)
        old = await open_documents(stores.qdrant, alias, DocumentCard(OLD.model), layout)
        began = time.monotonic()
        await fill(stores, old, chunks)
        filled = time.monotonic() - began
        name = f"{alias}__{DocumentCard(NEW.model).fingerprint}"
        new = await create_documents(stores.qdrant, name, DocumentCard(NEW.model), layout)

        async def make_live(made: str) -> None:
            await make_documents_live(stores.qdrant, alias, made)

        versions, tenants = PostgresDocumentVersions(stores.pool), PostgresTenants(stores.pool)
        copy = DocumentCopy(old, new, NEW, Throttle(rest=0.0))
        job = DocumentReindex(versions, tenants, copy, make_live)
        at_first, began = resident_mib(), time.monotonic()
        cpu = time.process_time()
        with watched() as seen:
            done = await job.build()
        took, cpu = time.monotonic() - began, time.process_time() - cpu
        quarter = len(seen) // 4
        each, cpu_each = took / chunks * 1e6, cpu / chunks * 1e6
        return (
            f"{chunks:,} chunks of {WORDS_EACH} words: loaded in {filled:.0f} s; {done.passages:,} copied in "
            f"{took:.0f} s, {each:.0f} us each, {cpu_each:.0f} us of processor time; {done.verified} verified; "
            f"memory {at_first:.0f} MiB before, {max(seen[: quarter + 1]):.0f} in a quarter, {max(seen):.0f} most"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, nargs="+", default=[100_000, 1_000_000])
    for chunks in parser.parse_args().chunks:
        with own_installation() as installation:
            sys.stdout.write(asyncio.run(measure(installation, chunks)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
