"""The named scenarios of the gateway, with the requirement of each."""

from collections.abc import Callable, Mapping
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

SCENARIOS: Mapping[str, str] = {
    "Natural language tool discovery": "TS-003",
    "Typo-tolerant keyword search": "TS-003",
    "Semantic intent matching": "TS-004",
    "Default model initialization": "TS-005",
    "GPU acceleration": "TS-005",
    "Model selection via CLI": "TS-005",
    "Model selection via environment variable": "TS-005",
    "Query prefix for retrieval optimization": "TS-005",
    "Graceful fallback on model failure": "TS-006",
    "Cache location resolution": "TS-007",
    "Custom data directory via environment variable": "TS-007",
    "Custom data directory via CLI flag": "TS-007",
    "Configuration-aware cache lookup": "TS-007",
    "Cache creation on first indexing": "TS-007",
    "Cache validation on startup": "TS-007",
    "Incremental cache updates": "TS-007",
    "Cache invalidation on schema change": "TS-007",
    "Basic search invocation with default output": "TS-002",
    "Limit results via CLI flag": "TS-002",
    "Limit results via environment variable": "TS-002",
    "Confidence threshold filtering via CLI": "TS-002",
    "Confidence threshold via environment variable": "TS-002",
    "Default threshold and limit values": "TS-002",
    "TypeScript types output format": "TS-009",
    "No results found": "TS-002",
    "Search endpoint invocation": "TS-008",
    "Search endpoint error handling": "TS-008",
    "Configure semantic weight (alpha) via environment": "TS-003",
    "Default alpha value": "TS-003",
    "Disable embedding cache via environment": "TS-007",
    "Disable GPU acceleration via environment": "TS-005",
    "Force GPU acceleration via environment": "TS-005",
    "Filter by server name": "TS-009",
    "Filter by specific tool": "TS-009",
    "Filter multiple servers and tools": "TS-009",
}


def scenario(title: str) -> Callable[[Test], Test]:
    """Mark the scenario that a test plays; test_scenarios.py checks that each has one."""
    if title not in SCENARIOS:
        raise ValueError(f"no scenario is called {title!r}")
    return lambda test: test
