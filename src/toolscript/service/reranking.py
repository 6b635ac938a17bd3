"""Who may look at the best documents once more: what of it is set up."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from toolscript.model.document_queries import Rerank
from toolscript.ports import Reranker
from toolscript.service.text_model import text_model
from toolscript.settings.service import Settings


@asynccontextmanager
async def open_rerankers(settings: Settings) -> AsyncIterator[Mapping[Rerank, Reranker]]:
    """Imported as they are needed: a model's runtime takes seconds to load."""
    async with AsyncExitStack() as opened:
        rerankers: dict[Rerank, Reranker] = {}
        if settings.rerank_model:
            rerankers[Rerank.CROSS_ENCODER] = await _cross_encoder(settings, opened)
        if settings.text_url:
            rerankers[Rerank.LLM] = _llm(settings, opened)
        yield rerankers


async def _cross_encoder(settings: Settings, opened: AsyncExitStack) -> Reranker:
    from toolscript.adapters.local_model.cross_encoder import CrossEncoder

    encoder = await asyncio.to_thread(CrossEncoder, settings.rerank_model)
    opened.callback(encoder.close)
    return encoder


def _llm(settings: Settings, opened: AsyncExitStack) -> Reranker:
    """A search waits for it: asked once, and what it does not answer then is not asked again."""
    from toolscript.search.documents.llm_reranker import LlmReranker

    text = text_model(settings, tries=1)
    opened.push_async_callback(text.close)
    return LlmReranker(text, settings.text_model or "llm")
