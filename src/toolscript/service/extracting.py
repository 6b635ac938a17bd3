"""Who extracts: the language model of the settings, where one is set up and it is wanted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolscript.errors import SetupError
from toolscript.model.text_usage import TextUsage
from toolscript.service.text_model import text_model
from toolscript.settings.service import Settings
from toolscript.sync.extracting import Extractor


@dataclass(frozen=True)
class Extracting:
    """`extractor` makes one for each run; what all of them spend together is bounded."""

    extractor: Callable[[], Extractor | None] = lambda: None
    usage: Callable[[], TextUsage | None] = lambda: None


@asynccontextmanager
async def open_extracting(
    settings: Settings, *, wanted: bool | None, token_budget: int | None
) -> AsyncIterator[Extracting]:
    if wanted and not settings.text_url:
        raise SetupError(
            "there is no language model to extract with",
            hint="set TOOLSCRIPT_TEXT_URL and TOOLSCRIPT_TEXT_MODEL, or leave out --extract",
        )
    if wanted is False or not settings.text_url:
        yield Extracting()
        return
    text = text_model(settings)

    def extractor() -> Extractor:
        left = None if token_budget is None else max(0, token_budget - text.usage.tokens)
        concurrency = settings.classify_concurrency
        return Extractor(text, settings.text_model, concurrency=concurrency, token_budget=left)

    try:
        yield Extracting(extractor, lambda: text.usage)
    finally:
        await text.close()
