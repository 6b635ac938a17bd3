"""Who classifies items: a language model where one is set up, with the rules behind it, or the rules alone."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.ports import Classifier, Embedder
from toolscript.settings import Settings
from toolscript.sync.classify.rules import RulesClassifier

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_classifier(settings: Settings, embedder: Embedder) -> AsyncIterator[Classifier]:
    rules = RulesClassifier(embedder)
    if not settings.text_url:
        yield rules
        return
    from toolscript.adapters.openai_text import OpenAITextModel
    from toolscript.model.text_usage import cost
    from toolscript.sync.classify.fallback import FallbackClassifier
    from toolscript.sync.classify.llm import LlmClassifier

    text = OpenAITextModel(
        settings.text_url,
        settings.text_model,
        api_key=settings.text_api_key.get_secret_value(),
        timeout_seconds=settings.text_timeout_seconds,
        deadline_seconds=3 * settings.text_timeout_seconds,
    )
    model = LlmClassifier(
        text,
        rules,
        batch=settings.classify_batch,
        concurrency=settings.classify_concurrency,
        token_budget=settings.classify_token_budget,
    )
    try:
        yield FallbackClassifier(model, rules)
    finally:
        used = text.usage
        spent = cost(used, settings.classify_price_in, settings.classify_price_out)
        logger.info("language model used", extra={"usage": used, "cost": spent})
        await text.close()
