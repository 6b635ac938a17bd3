"""`ingest` with everything it has but a model, which is a double: `python -m` this with a folder.

It starts quickly, so that it can be killed often. The language model is a double, too.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from toolscript.core.items import JsonObject
from toolscript.core.llm.model import TextUsage
from toolscript.core.values import silent
from toolscript.knowledge.ingest.extraction import Extractor
from toolscript.knowledge.ingest.report import IngestReport, discard_result
from toolscript.knowledge.model.ingest import IngestOptions
from toolscript.server import ingest as server_ingest
from toolscript.server.ingest import Extracting
from toolscript.testing import HashEmbedder

BEGUN = "begun"
# Short lease, so that another run soon takes over.
LEASE_SECONDS = 2.0


class Echo:
    """Returns one fact from each chunk with enough text, verbatim."""

    usage = TextUsage()

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        passages = [json.loads(line) for line in data.splitlines()]
        return {
            "passages": [
                {"passage": passage["passage"], "extractions": _facts(passage["text"])} for passage in passages
            ]
        }


def _facts(text: str) -> list[JsonObject]:
    lines: list[JsonObject] = [
        {"type": "fact", "title": line[:30], "text": line, "topics": line.split()[:1]}
        for line in text.splitlines()
        if len(line) > 60
    ]
    return lines[:3]


@asynccontextmanager
async def _embedder(_: Any) -> AsyncIterator[HashEmbedder]:
    yield HashEmbedder()


@asynccontextmanager
async def _extracting(*_: object, **__: object) -> AsyncIterator[Extracting]:
    yield Extracting(lambda: Extractor(Echo(), "echo"))


def ingested(folder: str) -> IngestReport:
    with (
        patch.object(server_ingest, "open_embedder", _embedder),
        patch.object(server_ingest, "open_extracting", _extracting),
        patch.object(server_ingest, "LEASE_SECONDS", LEASE_SECONDS),
    ):
        return server_ingest.ingest(
            IngestOptions((folder,), prune=True), on_progress=silent, on_result=discard_result
        )


if __name__ == "__main__":
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    ingested(sys.argv[1])
