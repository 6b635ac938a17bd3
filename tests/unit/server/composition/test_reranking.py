"""Which rerankers an installation has, by its settings."""

from pathlib import Path

import pytest

from tests.unit.core.embedding.tiny_cross_encoder import write_cross_encoder
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.documents.search.judges import fair
from toolscript.core.errors import ModelNotFound, Unavailable
from toolscript.core.settings.service import Settings
from toolscript.documents.model.query import Rerank
from toolscript.server.documents import open_rerankers

pytestmark = pytest.mark.requirement("DOC-007")


async def test_there_is_no_reranker_unless_one_is_configured() -> None:
    async with open_rerankers(Settings(rerank_model="", text_url="")) as rerankers:
        assert rerankers == {}


async def test_configured_rerankers_work_and_are_closed_at_the_end(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "tiny")
    with TextEndpoint(model=fair) as endpoint:
        settings = Settings(rerank_model=str(folder), text_url=endpoint.url, text_model="judge")
        async with open_rerankers(settings) as rerankers:
            assert {kind: item.name for kind, item in rerankers.items()} == {
                Rerank.CROSS_ENCODER: "tiny",
                Rerank.LLM: "judge",
            }
            for item in rerankers.values():
                worse, better = await item.scores("red cat", ["the dog", "a red cat"])
                assert better > worse
        with pytest.raises(Unavailable):
            await rerankers[Rerank.CROSS_ENCODER].scores("red cat", ["a red cat"])


async def test_a_search_does_not_retry_a_failing_language_model() -> None:
    with TextEndpoint() as endpoint:
        endpoint.answer_once({"error": {"message": "busy"}}, 503)
        async with open_rerankers(Settings(rerank_model="", text_url=endpoint.url)) as rerankers:
            with pytest.raises(Unavailable):
                await rerankers[Rerank.LLM].scores("red cat", ["a red cat"])
        assert len(endpoint.asked) == 1


async def test_a_missing_model_is_reported_at_startup(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        async with open_rerankers(Settings(rerank_model=str(tmp_path), text_url="")):
            pass
