"""eval make: drafts a judged set from a person's own servers, or from a catalog in a file."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolscript.adapters.jsonl_items import read_items
from toolscript.adapters.judged_drafts import check_folder, write_draft
from toolscript.errors import SetupError
from toolscript.evaluation.drafting import Paraphrase, draft
from toolscript.evaluation.model_paraphrases import ModelParaphrases
from toolscript.gateway.asking import Need, ask
from toolscript.model.drafts import Draft, WrittenDraft
from toolscript.model.items import Item, RefusedItem
from toolscript.model.progress import OnProgress
from toolscript.settings.gateway import GatewaySettings, load_gateway_settings

if TYPE_CHECKING:
    from toolscript.ports import Gateway


def make_draft(
    folder: Path,
    *,
    tools: Path | None,
    flags: Mapping[str, object],
    per_kind: int,
    seed: int,
    force: bool,
    on_progress: OnProgress,
) -> WrittenDraft:
    """Looks at the folder and the settings first: asking servers and a model takes time."""
    check_folder(folder, overwrite=force)
    settings = load_gateway_settings(flags)
    _check_text_model(settings)
    items, refused = (_own_items(flags, on_progress), 0) if tools is None else _items_of_file(tools)
    made = asyncio.run(_draft(items, settings, per_kind, seed, on_progress))
    write_draft(made, folder, overwrite=force)
    return WrittenDraft(str(folder), len(made.items), made.counts, refused)


def _own_items(flags: Mapping[str, object], on_progress: OnProgress) -> Sequence[Item]:
    async def all_items(gateway: "Gateway") -> Sequence[Item]:
        return await gateway.items()

    return ask(all_items, flags=flags, need=Need(model=False), on_progress=on_progress)


def _items_of_file(path: Path) -> tuple[Sequence[Item], int]:
    lines = list(read_items(path))
    items = [line for line in lines if not isinstance(line, RefusedItem)]
    return items, len(lines) - len(items)


async def _draft(
    items: Sequence[Item], settings: GatewaySettings, per_kind: int, seed: int, on_progress: OnProgress
) -> Draft:
    async with _paraphrases(settings) as paraphrase:
        return await draft(items, seed=seed, per_kind=per_kind, paraphrase=paraphrase, on_progress=on_progress)


def _check_text_model(settings: GatewaySettings) -> None:
    if bool(settings.text_model) != bool(settings.text_url):
        raise SetupError(
            "a text model needs its name and the address of its endpoint",
            hint="give both --text-model and --text-url (TOOLSCRIPT_TEXT_MODEL, TOOLSCRIPT_TEXT_URL), or neither",
        )


@asynccontextmanager
async def _paraphrases(settings: GatewaySettings) -> AsyncIterator[Paraphrase | None]:
    if not settings.text_model:
        yield None
        return
    try:
        from toolscript.adapters.openai_text import OpenAITextModel
    except ImportError as error:
        raise SetupError("a text model needs the package openai", hint="pip install openai") from error
    model = OpenAITextModel(settings.text_url, settings.text_model, api_key=settings.text_api_key)
    try:
        yield ModelParaphrases(model)
    finally:
        await model.close()
