"""Administration of a real service through the TypeScript client: skills, jobs, sources, changes and the audit."""

import json
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.tenants.service import served
from tests.e2e.typescript_client.package import run

pytestmark = pytest.mark.requirement("AP-003")

REGISTRY = Path(__file__).with_name("registry.mjs")


def test_an_administrator_can_do_everything_through_the_client(installation: Installation, project: Path) -> None:
    (project / "registry.mjs").write_text(REGISTRY.read_text("utf-8"), "utf-8")
    with served(installation, settings={"TOOLSCRIPT_ENVIRONMENT": "development"}) as (service, _):
        printed = run("node", "registry.mjs", cwd=project, environment={"SERVICE_URL": service.url})
    assert json.loads(printed) == {
        "skill": ["billing", "Invoices and payments", "Invoices", "Invoices"],
        "imported": "done",
        "tools": ["create_invoice", "send_reminder"],
        "set": [["billing", "human"]],
        "ofSkill": ["create_invoice"],
        "released": [True, True],
        "again": "done",
        "changed": ["create_invoice", ["description"], True],
        "left": ["create_invoice"],
        "source": ["billing", 1],
        "removed": "done",
        "sources": [],
        "jobs": 3,
        "suggestions": [],
        "audit": True,
        "tenants": [],
    }
