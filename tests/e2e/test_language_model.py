"""A worker with a language model: it classifies at a cost, and the rules are the fallback."""

import pytest

from tests.conftest import Installation
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify.models import honest
from toolscript.core.items import Item, ItemKind
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer

ITEMS = [
    Item("a", ItemKind.TOOL, "post", "send_mail", "Send an email message to somebody."),
    Item("b", ItemKind.TOOL, "disk", "read_file", "Read the contents of a file."),
]
SKILLS = [
    Skill("files", "Files", "Reads and writes files.", keywords=("file",)),
    Skill("mail", "Mail", "Sends email messages.", keywords=("email", "mail")),
]


async def classified(settings: Settings) -> tuple[set[str], float | None]:
    """Return the source of the assignments, and their cost."""
    async with open_index_writer(settings) as writer:
        for skill in SKILLS:
            await writer.stores.taxonomy.add(skill, "ann")
        await writer.stores.catalog.store("file", ITEMS)
        await writer.worker(silent).drain()
        items = await writer.stores.catalog.items([seen.id for seen in await writer.stores.catalog.scan(0, 10)])
        spent = writer.classifying.spent()
    assert all(stored.assignments for stored in items)
    sources = {assignment.source.value for stored in items for assignment in stored.assignments}
    return sources, None if spent is None else spent.cost


@pytest.mark.requirement("SK-004")
async def test_a_worker_classifies_with_the_language_model_and_reports_its_cost(
    installation: Installation,
) -> None:
    with TextEndpoint(model=honest, used=(1_000, 100)) as endpoint:
        more = {"text_url": endpoint.url, "text_model": "m", "classify_price_in": 2.0, "classify_price_out": 10.0}
        settings = installation.settings.model_copy(update=more)
        sources, cost = await classified(settings)
        assert (sources, cost) == ({"llm"}, 0.003)


@pytest.mark.requirement("SK-005")
async def test_when_the_language_model_is_down_the_rules_classify_and_report_it(
    installation: Installation,
) -> None:
    settings = installation.settings.model_copy(update={"text_url": "http://127.0.0.1:9/v1", "text_model": "m"})
    assert (await classified(settings))[0] == {"rules"}


@pytest.mark.requirement("SK-005")
async def test_without_a_language_model_the_rules_classify(installation: Installation) -> None:
    sources, cost = await classified(installation.settings)
    assert (sources, cost) == ({"rules"}, None)
