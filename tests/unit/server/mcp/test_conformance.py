"""The MCP project's own conformance suite for servers at the service's `/mcp`, in both eras of MCP.

Most of its scenarios call tools, prompts and resources of the suite's own test server. So that server also runs
behind our guard and transport: there, all required scenarios pass.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from tests.support.mcp_servers_conformance.everything import everything_server
from tests.unit.gateway.mcp import expected_failures
from tests.unit.gateway.mcp.conformance_suite import failing_checks, required
from tests.unit.gateway.runtime.serving import serving
from tests.unit.server.mcp.builders import World
from toolscript.core.mcp.endpoint import LOOPBACK_HOSTS, allow_hosts, mcp_asgi
from toolscript.core.web.auth import optional_authenticator_of
from toolscript.core.web.request_context import MAX_BYTES, RequestContext
from toolscript.server.mcp_endpoint import Guard
from toolscript.server.mcp_tools import ServiceTools
from toolscript.testing import MemoryRequestBudget

pytestmark = [pytest.mark.requirement("KN-005"), pytest.mark.slow]

MODERN = "2026-07-28"


@asynccontextmanager
async def the_suites_own_server_behind_our_door(world: World) -> AsyncIterator[str]:
    identify = optional_authenticator_of(None, MemoryRequestBudget(), public_scopes=world.public)
    security = allow_hosts(LOOPBACK_HOSTS, ("http", "https"))
    tools = ServiceTools(world.parts())
    app, living = mcp_asgi(
        everything_server(), security, MAX_BYTES, lambda inner: Guard(inner, tools, identify, security)
    )
    served = Starlette(routes=[Route("/mcp", app)], middleware=[Middleware(RequestContext)])
    async with living, serving(served) as url:
        yield f"{url}/mcp"


def failed(found: dict[str, list[str]]) -> set[str]:
    return {scenario for scenario, failures in found.items() if failures}


async def test_all_required_scenarios_of_2026_07_28_pass_behind_our_guard(world: World, tmp_path: Path) -> None:
    async with the_suites_own_server_behind_our_door(world) as url:
        result = await failing_checks(url, tmp_path / "results", "--requirements", MODERN)
    assert required(MODERN) <= result.keys()
    assert {scenario: result[scenario] for scenario in required(MODERN) if result[scenario]} == {}
    assert failed(result) == expected_failures.THROUGH_THE_GATEWAY.keys()


async def test_the_services_tools_fail_exactly_what_is_listed_in_2026_07_28(world: World, tmp_path: Path) -> None:
    async with world.served() as url:
        result = await failing_checks(f"{url}/mcp", tmp_path / "results", "--requirements", MODERN)
    assert required(MODERN) <= result.keys()
    assert failed(result) == expected_failures.SERVICE_TOOLS.keys()
    assert len(result["server-stateless"]) == 4, result["server-stateless"]


@pytest.mark.parametrize("version", expected_failures.SERVICE_TOOLS_OLD)
async def test_the_services_tools_fail_exactly_what_is_listed_in_older_versions(
    world: World, tmp_path: Path, version: str
) -> None:
    async with world.served() as url:
        what = ("--suite", "active", "--spec-version", version)
        result = await failing_checks(f"{url}/mcp", tmp_path / "results", *what)
    assert len(result) >= 27
    assert failed(result) == expected_failures.SERVICE_TOOLS_OLD[version].keys()
