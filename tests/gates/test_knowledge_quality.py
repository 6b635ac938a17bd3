"""Our own pages as a library: queries about them return the right chunk with its position."""

import asyncio
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run_here
from toolscript.core.settings.service import Settings
from toolscript.knowledge.model.query import KnowledgeQuery
from toolscript.server.knowledge import open_knowledge
from toolscript.server.stores import connect_qdrant, open_embedder

pytestmark = pytest.mark.requirement("KN-001", "KN-005", "KN-006")

PAGES = Path(__file__).parents[2] / "docs"
AMONG = 3
# Query, text of the chunk, and its page and section.
QUESTIONS = (
    ("Which signatures of tokens are accepted?", "Documents", "Who may ask", "EdDSA"),
    ("How does a walk through many documents go on where a page ended?", "Documents", "Pages", "cursor"),
    (
        "How do I tell one tenant's searches from another's in the traces?",
        "Documents",
        "Seeing what happens",
        "trace",
    ),
    ("filter by a field that a document does not have", "Documents", "Filters", "field"),
    ("Where do the vectors of my tools lie on disk?", "The gateway", "What is kept on disk", "embeddings"),
    ("environment variables in the config file", "The gateway", "Config file", "${"),
    ("How many tokens does an agent save?", "The gateway", "What it costs and saves", "tokens"),
    ("connect Claude Desktop or Cursor", "The gateway", "Connecting clients", "Cursor"),
    ("What does a good skill look like?", "Skills", "The taxonomy", "good skill"),
    ("Who decides when a new skill is suggested?", "Skills", "Skills that are missing", "suggest"),
)


def test_ten_questions_about_our_own_pages_are_answered_among_the_first_three(installation: Installation) -> None:
    pages = [str(PAGES / f"{name}.md") for name in ("documents", "gateway", "skills")]
    run_here(installation.environment, "ingest", *pages)
    assert asyncio.run(_wrong(installation.settings)) == []


async def _wrong(settings: Settings) -> list[object]:
    wrong: list[object] = []
    async with (
        open_embedder(settings) as embedder,
        connect_qdrant(settings) as engine,
        open_knowledge(settings, engine, embedder) as knowledge,
    ):
        assert knowledge is not None
        for text, title, section, message in QUESTIONS:
            hits = (await knowledge.search(KnowledgeQuery(text, AMONG))).hits
            places = [(hit.source.title, hit.position.section) for hit in hits if message in hit.content]
            if (title, section) not in places:
                wrong.append((text, [(hit.source.title, hit.position.section) for hit in hits]))
    return wrong
