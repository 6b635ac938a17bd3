"""Shared by tests of skill management: an installation, with access over HTTP and to its stores."""

from dataclasses import dataclass
from typing import Any

import httpx2

from tests.conftest import Installation
from tests.support.faults import Relay
from toolscript.core.retrieval.model import Fields, IndexCard
from toolscript.core.taxonomy import Classification, Classified, Skill, SuggestedSkill
from toolscript.server.stores import Stores, open_embedder
from toolscript.tools.indexing.versions import open_for_doctor

SKILLS, SUGGESTIONS, AUDIT = "/api/v1/skills", "/api/v1/suggestions", "/api/v1/audit"


def described(skill_id: str, **more: object) -> dict[str, Any]:
    return {"id": skill_id, "name": skill_id.title(), "description": f"All about {skill_id}", **more}


@dataclass(frozen=True)
class Managed:
    client: httpx2.AsyncClient
    stores: Stores
    installation: Installation
    postgres: Relay
    qdrant: Relay

    async def ask(self, method: str, path: str, expected: int = 200, json: object = None, **query: Any) -> Any:
        answer = await self.client.request(method, path, json=json, params=query)
        assert answer.status_code == expected, answer.text
        return answer.json()

    async def add(self, skill_id: str, **more: object) -> Any:
        return await self.ask("POST", SKILLS, 201, described(skill_id, **more))

    async def refused(self, method: str, path: str, expected: int, json: object = None, **query: Any) -> Any:
        """Return the error, after a check of its shape."""
        answer = await self.ask(method, path, expected, json, **query)
        assert answer.keys() == {"error"}
        assert answer["error"].keys() == {"code", "message", "details"}
        return answer["error"]

    async def point(self, skill_id: str) -> Fields | None:
        """Return the payload of a skill in the index that routes searches."""
        async with open_embedder(self.installation.settings) as embedder:
            card = IndexCard(embedder.model)
        opened = await open_for_doctor(self.stores.indexes, self.stores.dirty, card)
        number = Skill(skill_id, "").point_id
        return (await opened.skills.fields([number])).get(number)

    async def item(self, name: str) -> int:
        """Return the id of an item of the catalog."""
        seen = await self.stores.catalog.scan(0, 1000)
        stored_items = await self.stores.catalog.items([version.id for version in seen])
        return next(stored.id for stored in stored_items if stored.item.name == name)

    async def suggest(self, name: str, *items: str, description: str = "") -> int:
        """Record that a classifier suggested this skill for these items; return the id of the suggestion."""
        return await suggest(self.stores, name, *items, description=description)


async def suggest(stores: Stores, name: str, *items: str, description: str = "") -> int:
    seen = await stores.catalog.scan(0, 1000)
    await stores.assignments.reclassify(0, 1000)
    stored_items = await stores.catalog.items([version.id for version in seen])
    classification = Classification(suggestion=SuggestedSkill(name, description))
    classified = [
        Classified(stored.id, stored.version, classification)
        for stored in stored_items
        if stored.item.name in items
    ]
    assert len(classified) == len(items)
    await stores.assignments.record(classified)
    return next(
        suggestion.id for suggestion in await stores.suggestions.page(0, 1000) if suggestion.suggested.name == name
    )
