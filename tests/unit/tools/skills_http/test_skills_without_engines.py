"""Skills over HTTP while an engine is down: changes are stored, and the response reports what is missing."""

import pytest

from tests.support.faults import Fault
from tests.unit.tools.skills_http.builders import SKILLS, Managed, described
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer

pytestmark = pytest.mark.requirement("SK-001")


async def test_with_the_index_down_a_change_is_stored_and_routing_is_pending(managed: Managed) -> None:
    await managed.add("patient")
    await managed.qdrant.fail(Fault.REFUSED)
    try:
        ended = await managed.ask("PATCH", f"{SKILLS}/patient", json={"is_active": False})
    finally:
        await managed.qdrant.heal()
    assert (ended["is_active"], ended["routing"]) == (False, "pending")
    point = await managed.point("patient")
    assert point is not None
    assert point["is_active"] is True
    async with open_index_writer(managed.installation.settings) as writer:
        await writer.worker(silent).drain()
    point = await managed.point("patient")
    assert point is not None
    assert point["is_active"] is False


async def test_with_the_catalog_down_nothing_changes_and_the_response_is_an_error(managed: Managed) -> None:
    await managed.postgres.fail(Fault.REFUSED)
    try:
        error = await managed.refused("POST", SKILLS, 503, described("unheard"))
    finally:
        await managed.postgres.heal()
    assert error["code"] == "UNAVAILABLE"
