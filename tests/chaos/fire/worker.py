"""A worker on the real engines whose model is a double and whose classifier reads topics: `python -m` this."""

import asyncio
from unittest.mock import patch

from tests.chaos.fire.topics import TopicClassifier
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.values import silent
from toolscript.server import indexing
from toolscript.server.indexing import IndexWriter
from toolscript.server.settings import load_settings
from toolscript.server.skills import Classifying
from toolscript.server.stores import open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.versions import open_for_writing

# Short lease: just longer than a busy worker needs.
LEASE_SECONDS = 1.0


async def main() -> None:
    settings = load_settings()
    embedder = HashEmbedder()
    async with open_stores(settings) as stores:
        card = IndexCard(embedder.model)
        opened = await open_for_writing(stores.indexes, stores.dirty, card)
        writer = IndexWriter(stores, embedder, Classifying(TopicClassifier()), opened)
        await writer.worker(silent).run_forever(poll_seconds=0.05)


if __name__ == "__main__":
    with patch.object(indexing, "LEASE_SECONDS", LEASE_SECONDS):
        asyncio.run(main())
