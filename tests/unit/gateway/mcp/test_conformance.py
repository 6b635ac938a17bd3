"""The MCP project's own conformance suite, at /mcp, /mcp/all and /mcp/{server}, in both protocol versions."""

import json
from pathlib import Path

import pytest

from tests.unit.gateway.mcp import expected_failures
from tests.unit.gateway.mcp.conformance_suite import PINNED, failing_checks, required
from tests.unit.gateway.mcp.through import (
    serve_everything_at_the_joint_endpoint,
    serve_everything_through_the_gateway,
)

pytestmark = pytest.mark.slow

MODERN = ("--requirements", "2026-07-28")
LEGACY = ("--suite", "active", "--spec-version", "2025-06-18")


def test_the_suite_is_pinned_with_hashes_and_without_the_address_of_a_registry() -> None:
    packages = json.loads((PINNED / "package-lock.json").read_text("utf-8"))["packages"]
    assert len(packages) > 100
    assert [name for name, entry in packages.items() if name and "integrity" not in entry] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


def failed(found: dict[str, list[str]]) -> set[str]:
    return {scenario for scenario, failures in found.items() if failures}


@pytest.mark.requirement("TS-010")
async def test_the_gateway_passes_the_required_scenarios_of_2026_07_28(tmp_path: Path) -> None:
    async with serve_everything_through_the_gateway() as url:
        found = await failing_checks(url, tmp_path, *MODERN)
    assert required("2026-07-28") <= found.keys()
    assert {scenario: found[scenario] for scenario in required("2026-07-28") if found[scenario]} == {}
    assert failed(found) == expected_failures.THROUGH_THE_GATEWAY.keys()


@pytest.mark.nightly
@pytest.mark.requirement("TS-010")
async def test_all_of_2025_06_18_passes_through_the_gateway(tmp_path: Path) -> None:
    async with serve_everything_through_the_gateway() as url:
        found = await failing_checks(url, tmp_path, *LEGACY)
    assert len(found) >= 27
    assert {scenario: failures for scenario, failures in found.items() if failures} == {}


@pytest.mark.requirement("TS-010")
async def test_the_direct_endpoint_passes_the_required_scenarios_of_2026_07_28(tmp_path: Path) -> None:
    async with serve_everything_through_the_gateway("all") as url:
        found = await failing_checks(url, tmp_path, *MODERN)
    assert required("2026-07-28") <= found.keys()
    assert {scenario: found[scenario] for scenario in required("2026-07-28") if found[scenario]} == {}
    assert failed(found) == expected_failures.ALL_TOOLS.keys()


@pytest.mark.nightly
@pytest.mark.requirement("TS-010")
async def test_all_of_2025_06_18_passes_at_the_direct_endpoint(tmp_path: Path) -> None:
    async with serve_everything_through_the_gateway("all") as url:
        found = await failing_checks(url, tmp_path, *LEGACY)
    assert len(found) >= 27
    assert {scenario: failures for scenario, failures in found.items() if failures} == {}


@pytest.mark.requirement("TS-010")
async def test_the_joint_endpoint_fails_exactly_what_is_listed_in_2026_07_28(tmp_path: Path) -> None:
    async with serve_everything_at_the_joint_endpoint() as url:
        found = await failing_checks(url, tmp_path, *MODERN)
    assert required("2026-07-28") <= found.keys()
    assert failed(found) == expected_failures.JOINT_ENDPOINT.keys()
    assert len(found["server-stateless"]) == 4, found["server-stateless"]
    entries = {name for name in found if name.startswith(("prompts-", "resources-"))}
    assert len(entries | {"caching", "completion-complete"}) == 11
    assert not entries & failed(found)


@pytest.mark.nightly
@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize("version", expected_failures.JOINT_ENDPOINT_OLD)
async def test_the_joint_endpoint_fails_exactly_what_is_listed_in_older_versions(
    tmp_path: Path, version: str
) -> None:
    async with serve_everything_at_the_joint_endpoint() as url:
        found = await failing_checks(url, tmp_path, "--suite", "active", "--spec-version", version)
    assert len(found) >= 27
    assert failed(found) == expected_failures.JOINT_ENDPOINT_OLD[version].keys()
