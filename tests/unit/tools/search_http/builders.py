"""What tests of routed searches share: questions over HTTP, and what can be read off the answers."""

from dataclasses import dataclass
from typing import Any

from tests.unit.tools.sources_http.builders import Service

SEARCH = "/api/v1/search"
STRATEGIES = ("hierarchical", "direct", "hybrid")
# Everything an arm names, whatever it is worth.
ALL = {"limit": 100, "tool_threshold": 0.0}

Json = dict[str, Any]


@dataclass(frozen=True)
class Searching:
    service: Service

    async def search(self, query: str, **more: Any) -> Json:
        return dict(await self.service.ask("POST", SEARCH, 200, {"query": query, **more}))

    async def skills(self, query: str, **more: Any) -> list[Json]:
        return list(await self.service.ask("GET", f"{SEARCH}/skills", query=query, **more))

    async def tools(self, query: str, **more: Any) -> list[Json]:
        return list(await self.service.ask("GET", f"{SEARCH}/tools", query=query, **more))

    async def refused(self, query: str, expected: int, **more: Any) -> Json:
        return dict(await self.service.refused("POST", SEARCH, expected, {"query": query, **more}))


def ids(found: list[Json]) -> list[Any]:
    """Of items or of skills."""
    return [one["id"] for one in found]


def names(found: list[Json]) -> list[str]:
    return [one["name"] for one in found]


def scores(found: list[Json]) -> list[float]:
    return [one["score"] for one in found]


def by_vector(answer: Json) -> list[Json]:
    return [skill for skill in answer["matched_skills"] if skill["matched_by"] == "vector"]


def by_words(answer: Json) -> list[Json]:
    return [skill for skill in answer["matched_skills"] if skill["matched_by"] == "words"]


def without_times(answer: Json) -> Json:
    """What two answers to the same question have in common."""
    metadata = {name: one for name, one in answer["metadata"].items() if not name.endswith("_time_ms")}
    return {**answer, "metadata": metadata}
