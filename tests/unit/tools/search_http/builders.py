"""Shared by tests of routed searches: requests over HTTP, and helpers for the responses."""

from dataclasses import dataclass
from typing import Any

from tests.unit.tools.sources_http.builders import Service

SEARCH = "/api/v1/search"
STRATEGIES = ("hierarchical", "direct", "hybrid")
# Every candidate of a retriever, whatever its score.
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


def ids(entries: list[Json]) -> list[Any]:
    """Return the ids of items or skills."""
    return [entry["id"] for entry in entries]


def names(entries: list[Json]) -> list[str]:
    return [entry["name"] for entry in entries]


def scores(entries: list[Json]) -> list[float]:
    return [entry["score"] for entry in entries]


def by_vector(answer: Json) -> list[Json]:
    return [skill for skill in answer["matched_skills"] if skill["matched_by"] == "vector"]


def by_words(answer: Json) -> list[Json]:
    return [skill for skill in answer["matched_skills"] if skill["matched_by"] == "words"]


def without_times(answer: Json) -> Json:
    """Return the part of an answer that is the same for the same query."""
    metadata = {name: value for name, value in answer["metadata"].items() if not name.endswith("_time_ms")}
    return {**answer, "metadata": metadata}
