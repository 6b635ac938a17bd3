"""A worker on the real engines whose model is a double and whose classifier reads topics: `python -m` this."""

import asyncio

from tests.whole.fire.topics import TopicClassifier
from toolscript.model.models import IndexCard
from toolscript.model.progress import silent
from toolscript.service.classifying import Classifying
from toolscript.service.parts import open_stores
from toolscript.service.writing import Writer
from toolscript.settings.service import load_settings
from toolscript.sync.generations import open_for_writing
from toolscript.testing import HashEmbedder


async def main() -> None:
    settings = load_settings()
    embedder = HashEmbedder()
    async with open_stores(settings) as stores:
        card = IndexCard(embedder.model)
        opened = await open_for_writing(stores.indexes, stores.dirty, card)
        writer = Writer(settings, stores, embedder, Classifying(TopicClassifier()), opened)
        await writer.worker(silent).run_forever(poll_seconds=0.05)


if __name__ == "__main__":
    asyncio.run(main())
