"""Which rerankers an installation has, by its settings."""

from pathlib import Path

import pytest

from tests.unit.core.embedding.tiny_cross_encoder import write_cross_encoder
from toolscript.core.errors import ModelNotFound, Unavailable
from toolscript.core.settings.service import Settings
from toolscript.documents.model.query import Rerank
from toolscript.server.documents import open_rerankers

pytestmark = pytest.mark.requirement("DOC-007")


async def test_there_is_no_reranker_unless_one_is_configured() -> None:
    async with open_rerankers(Settings(rerank_model="")) as rerankers:
        assert rerankers == {}


async def test_a_configured_reranker_works_and_is_closed_at_the_end(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "tiny")
    async with open_rerankers(Settings(rerank_model=str(folder))) as rerankers:
        assert {kind: item.name for kind, item in rerankers.items()} == {Rerank.CROSS_ENCODER: "tiny"}
        worse, better = await rerankers[Rerank.CROSS_ENCODER].scores("red cat", ["the dog", "a red cat"])
        assert better > worse
    with pytest.raises(Unavailable):
        await rerankers[Rerank.CROSS_ENCODER].scores("red cat", ["a red cat"])


async def test_a_missing_model_is_reported_at_startup(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        async with open_rerankers(Settings(rerank_model=str(tmp_path))):
            pass
