"""What an erased tenant leaves in the files of Qdrant, and the commands after which it leaves nothing."""

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run_here
from tests.support.secured_qdrant import engine_folder, secured_qdrant
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.settings.service import Settings
from toolscript.documents.model.document import Document
from toolscript.documents.service import DocumentService
from toolscript.server.document_index import LiveIndex
from toolscript.server.stores import open_embedder, open_stores

pytestmark = pytest.mark.requirement("DOC-003")

WORD, SECONDS = "Zanzibarquux", 20.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with engine_folder("erased") as folder:
        yield folder


def files_with(word: str, folder: Path) -> list[str]:
    """Return the files that have this word. Qdrant may delete some meanwhile."""
    names = list[str]()
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                names += [name] if word.encode() in (Path(parent) / name).read_bytes() else []
    return names


def wait_until_gone(word: str, folder: Path) -> None:
    ends_at = time.monotonic() + SECONDS
    while left := files_with(word, folder):
        assert time.monotonic() < ends_at, left
        time.sleep(0.2)


async def put(settings: Settings, tenant: str, *texts: str) -> None:
    async with open_stores(settings) as stores, open_embedder(settings) as embedder:
        live = LiveIndex.of(settings, stores)
        index = await live.open_or_create(embedder.model)
        service = DocumentService(embedder, index, live.tenants, live.versions)
        documents = [Document(f"d{number}", text, {}) for number, text in enumerate(texts)]
        await service.put(Principal(Tenant(tenant)), documents)


def test_after_the_index_is_built_anew_no_file_has_a_word_of_an_erased_tenant(
    installation: Installation, folder: Path
) -> None:
    with secured_qdrant(folder, []) as port:
        mine = {**installation.environment, "TOOLSCRIPT_QDRANT_GRPC_PORT": str(port)}
        settings = replace(installation, environment=mine).settings
        asyncio.run(put(settings, "globex", *(f"{WORD} number {number}" for number in range(20))))
        asyncio.run(put(settings, "acme", "Rotation of keys"))
        assert "reindex documents --anew" in run_here(mine, "tenants", "erase", "globex", "--yes").stderr
        assert files_with(WORD, folder), "nothing remains: the page says too much"
        run_here(mine, "reindex", "documents", "--anew", "--share", "1")
        run_here(mine, "reindex", "documents", "--drop-previous")
        wait_until_gone(WORD, folder)
        assert files_with("Rotation of keys", folder)
        (left,) = json.loads(run_here(mine, "tenants", "list", "--json").stdout)["results"]
    assert (left["name"], left["document_count"]) == ("acme", 1)
