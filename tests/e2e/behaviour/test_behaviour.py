"""The same operations through every surface have the same answers, errors and pages."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.behaviour.drivers import Driver, Json, gateway_drivers, service_drivers
from tests.e2e.gateway.conftest import furnished, served, weights
from tests.e2e.gateway.machines import Gateway as GatewayProcess
from tests.e2e.gateway.machines import Machine
from tests.e2e.typescript_client.conftest import Demo, demo
from tests.e2e.typescript_client.package import driver_command
from toolscript import Gateway

__all__ = ["demo", "furnished", "served", "weights"]

pytestmark = [pytest.mark.requirement("AP-002", "AP-003"), pytest.mark.slow]

DOCUMENTS = [
    {"id": "b/1", "text": "Lighthouses warn ships of rocks.", "metadata": {"year": 1822}},
    {"id": "b/2", "text": "Bakers rise before the sun.", "title": "Bread", "metadata": {"year": 1900}},
    {"id": "b/3", "text": "Ships need harbours.", "metadata": {"year": 2020}},
    {"id": "", "text": "An id is missing."},
]
OLD = {"must": [{"field": "year", "op": "lt", "value": 1900}]}

GATEWAY_CASES: list[tuple[str, Json]] = [
    ("tools.search", {"query": "add two numbers"}),
    ("tools.search", {"query": "add two numbers", "limit": 1}),
    ("tools.search", {"query": "read a file", "limit": 10, "threshold": 0.0}),
    ("tools.search", {"query": "review code", "kind": "prompt", "threshold": 0.1}),
    ("tools.search", {"query": "zzyzx quuxify the frobnicator"}),
    ("tools.search", {"query": "  "}),
    ("tools.search", {"query": "x", "limit": 0}),
    ("tools.search", {"query": "x" * 1_001}),
    ("tools.list", {"page_size": 3}),
    ("tools.list", {"kind": "prompt"}),
    ("tools.list", {"server": "plain", "page_size": 1}),
    ("tools.list", {"server": "nothing"}),
    ("tools.list", {"kind": "spoon"}),
    ("tools.get", {"id": "plain__add"}),
    ("tools.get", {"id": "plain__addd"}),
    ("tools.get", {"id": "nonsense"}),
    ("tools.call", {"id": "plain__add", "arguments": {"a": 1, "b": 2}}),
    ("tools.call", {"id": "plain__fail", "arguments": {}}),
    ("tools.call", {"id": "plain__refuse", "arguments": {}}),
    ("tools.call", {"id": "plain__nothing", "arguments": {}}),
    ("tools.call", {"id": "nobody__nothing", "arguments": {}}),
    ("tools.types", {"names": ["plain__add"]}),
    ("tools.types", {"names": ["nothing"]}),
    ("servers.list", {"page_size": 1}),
]
SERVICE_CASES: list[tuple[str, Json]] = [
    ("tools.search", {"query": "schedule a meeting"}),
    ("tools.search", {"query": "schedule a meeting", "limit": 1}),
    ("tools.search", {"query": "schedule a meeting", "kind": "tool", "limit": 3}),
    ("tools.search", {"query": "zzyzx quuxify the frobnicator"}),
    ("tools.search", {"query": "  "}),
    ("tools.search", {"query": "x" * 1_001}),
    ("tools.list", {"page_size": 7}),
    ("tools.list", {"kind": "prompt"}),
    ("tools.list", {"kind": "spoon"}),
    ("tools.get", {"id": 1}),
    ("tools.get", {"id": 999_999}),
    ("skills.search", {"query": "schedule a meeting", "limit": 2}),
    ("skills.list", {"page_size": 3}),
    ("skills.get", {"id": "nothing"}),
    ("documents.search", {"query": "ships", "limit": 5}),
    ("documents.put", {"documents": DOCUMENTS}),
    ("documents.put", {"documents": DOCUMENTS[:1]}),
    ("documents.search", {"query": "ships and harbours", "limit": 2}),
    ("documents.search", {"query": "ships", "filters": OLD}),
    ("documents.search", {"query": "ships", "limit": 0}),
    ("documents.get", {"id": "b/2"}),
    ("documents.list", {"page_size": 2}),
    ("documents.delete", {"ids": ["b/1", "b/2", "b/3", "b/4"]}),
    ("documents.get", {"id": "b/2"}),
    ("knowledge.search", {"query": "what do the rules say", "limit": 2}),
    ("knowledge.search", {"query": " "}),
    ("knowledge.list_sources", {"page_size": 1}),
]
# Fields that differ from one request to the next, or that not every surface has.
VOLATILE = {"query_id", "took_ms", "stages_ms", "updated_at", "hint", "line"}
# What a server says of itself only while it runs: gateways with the same servers may let others sleep.
RUNTIME = {"state", "protocol", "version"}
# Of these operations, MCP and some commands return a part, with other names: this is what all have.
SHARED = {
    "tools.search": ("name", "confidence"),
    "documents.search": ("id", "score"),
    "knowledge.search": ("id",),
}


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return driver_command(tmp_path_factory.mktemp("driver"))


@pytest.fixture
async def of_gateway(
    served: tuple[Machine, GatewayProcess], furnished: Machine, weights: Path, typescript: Sequence[str]
) -> AsyncIterator[list[Driver]]:
    machine, process = served
    opened = Gateway.open(config=furnished.config, data_dir=furnished.data, model=str(weights), alone=True)
    async with opened as gateway, gateway_drivers(machine, process.url, gateway, typescript) as drivers:
        yield drivers


@pytest.fixture
async def of_service(demo: Demo, tmp_path: Path, typescript: Sequence[str]) -> AsyncIterator[list[Driver]]:
    async with service_drivers(demo.url, demo.token, tmp_path, typescript) as drivers:
        yield drivers


def whole(value: Any) -> Any:
    """Return an answer without what is volatile, null and absent alike."""
    if isinstance(value, Mapping):
        fields = {name: whole(field) for name, field in value.items() if name not in VOLATILE}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list):
        return [whole(entry) for entry in value]
    return round(value, 3) if isinstance(value, float) else value


def without_runtime(servers: Json) -> Json:
    """Return a list of servers with one word for those that answer calls, whether they run or sleep."""
    kept = [
        {name: field for name, field in server.items() if name not in RUNTIME}
        | {"state": "answers" if server["state"] in ("ready", "asleep") else server["state"]}
        for server in servers["answer"]["results"]
    ]
    return {"answer": {"results": kept}}


def shared(operation: str, outcome: Json) -> Any:
    """Return the part of an answer that every surface has; MCP rounds to two digits."""
    if operation not in SHARED or "error" in outcome:
        return whole(outcome)
    hits = [
        [_full_name(hit) if name == "name" else hit.get(name) for name in SHARED[operation]]
        for hit in outcome["answer"]["results"]
    ]
    rounded = [[round(field, 2) if isinstance(field, float) else field for field in hit] for hit in hits]
    return {"hits": rounded, "good_match": outcome["answer"]["metadata"].get("good_match")}


def _full_name(hit: Json) -> str:
    server = hit.get("server")
    name = str(hit["name"])
    return name if "__" in name or server is None else f"{server}__{name}"


def differences(driver: Driver, operation: str, arguments: Json, expected: Json, got: Json) -> Iterator[str]:
    if driver.name == "MCP" and "error" in expected:
        # A text for a model, which has no codes, other limits and its own hints.
        if not got.get("error", {}).get("message"):
            yield f"{driver.name} {operation} {arguments}: {got}, and not the error {expected}"
        return
    if operation == "servers.list":
        expected, got = without_runtime(expected), without_runtime(got)
    complete = driver.name not in ("MCP", "command line")
    compared = [
        (whole(expected), whole(got)) if complete else (shared(operation, expected), shared(operation, got))
    ]
    for right, found in compared:
        if right != found:
            yield f"{driver.name} {operation} {arguments}:\n  {found}\nand not\n  {right}"


async def compared(drivers: Sequence[Driver], cases: Sequence[tuple[str, Json]]) -> tuple[list[str], int]:
    """Run the cases in their order on each driver; return what differs from the first driver, and a count."""
    reference, *others = drivers
    expected = [await reference.do(operation, arguments) for operation, arguments in cases]
    found, count = list[str](), 0
    for driver in others:
        for (operation, arguments), right in zip(cases, expected, strict=True):
            owner = driver if driver.has(operation, arguments) else reference
            got = await owner.do(operation, arguments)
            found += differences(owner, operation, arguments, right, got)
            count += owner is driver
    return found, count


async def test_every_surface_of_a_gateway_behaves_alike(of_gateway: list[Driver]) -> None:
    found, count = await compared(of_gateway, GATEWAY_CASES)
    assert not found, "\n".join(found)
    assert count >= 4 * len(GATEWAY_CASES)


async def test_every_surface_of_a_service_behaves_alike(of_service: list[Driver]) -> None:
    found, count = await compared(of_service, SERVICE_CASES)
    assert not found, "\n".join(found)
    assert count >= 3 * len(SERVICE_CASES)
