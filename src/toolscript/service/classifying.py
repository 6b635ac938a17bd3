"""Who classifies items: a language model where one is set up, with the rules behind it, or the rules alone."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from toolscript.model.text_usage import Spending, cost
from toolscript.ports import Classifier, Embedder
from toolscript.service.text_model import text_model
from toolscript.settings.service import Settings
from toolscript.sync.classify.rules import RulesClassifier

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Classifying:
    """Who classifies, and what the language model has cost so far; None when there is none."""

    classifier: Classifier
    spent: Callable[[], Spending | None] = lambda: None


@asynccontextmanager
async def open_classifier(settings: Settings, embedder: Embedder) -> AsyncIterator[Classifying]:
    rules = RulesClassifier(embedder)
    if not settings.text_url:
        yield Classifying(rules)
        return
    from toolscript.sync.classify.fallback import FallbackClassifier
    from toolscript.sync.classify.llm import LlmClassifier

    text = text_model(settings)
    model = LlmClassifier(
        text,
        rules,
        batch=settings.classify_batch,
        concurrency=settings.classify_concurrency,
        token_budget=settings.classify_token_budget,
    )

    def spent() -> Spending:
        return Spending(text.usage, cost(text.usage, settings.classify_price_in, settings.classify_price_out))

    try:
        yield Classifying(FallbackClassifier(model, rules), spent)
    finally:
        logger.info("language model used", extra={**asdict(text.usage), "cost": spent().cost})
        await text.close()
