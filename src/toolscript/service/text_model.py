"""The language model of the settings, which must name one."""

from typing import TYPE_CHECKING

from toolscript.settings.service import Settings

if TYPE_CHECKING:
    from toolscript.adapters.openai_text import OpenAITextModel

TRIES = 3


def text_model(settings: Settings, tries: int = TRIES) -> "OpenAITextModel":
    """Whoever opens it closes it. Imported here: many commands do without."""
    from toolscript.adapters.openai_text import OpenAITextModel

    return OpenAITextModel(
        settings.text_url,
        settings.text_model,
        api_key=settings.text_api_key.get_secret_value(),
        timeout_seconds=settings.text_timeout_seconds,
        deadline_seconds=tries * settings.text_timeout_seconds,
        retries=tries - 1,
    )
