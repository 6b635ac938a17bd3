"""The driver for the behaviour suite knows its operations, and answers each line with one."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.gateway.machines import Gateway
from tests.e2e.typescript_client.conftest import Demo
from tests.e2e.typescript_client.package import DRIVER, ROOT, driver_command

pytestmark = pytest.mark.requirement("AP-003")

OPERATIONS = ROOT / "tests" / "e2e" / "behaviour" / "operations.md"

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    command = driver_command(tmp_path_factory.mktemp("driver"))

    def ask(url: str, token: str, *requests: tuple[str, dict[str, object]]) -> list[dict[str, Any]]:
        lines = [json.dumps({"operation": name, "arguments": arguments}) for name, arguments in requests]
        environment = {**os.environ, "TOOLSCRIPT_URL": url, "TOOLSCRIPT_TOKEN": token}
        done = subprocess.run(
            command,
            env=environment,
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


def test_the_driver_has_the_operations_of_the_suite() -> None:
    listed = re.findall(r"^\| `([\w.]+)` \|", OPERATIONS.read_text("utf-8"), re.MULTILINE)
    assert listed
    assert re.findall(r'^  "([\w.]+)": ', DRIVER.read_text("utf-8"), re.MULTILINE) == listed


def test_the_driver_asks_a_service(ask: Ask, demo: Demo) -> None:
    documents = [{"id": "driven", "text": "Driven snow."}]
    found, listed, missing, put, gone = ask(
        *(demo.url, demo.token),
        ("tools.search", {"query": "schedule a meeting", "limit": 1}),
        ("tools.list", {"page_size": 9}),
        ("skills.get", {"id": "nothing"}),
        ("documents.put", {"documents": documents}),
        ("documents.delete", {"ids": ["driven"]}),
    )
    assert [hit["name"] for hit in found["answer"]["results"]] == ["create_event"]
    assert len(listed["answer"]["results"]) == 40
    assert missing["error"]["code"] == "NOT_FOUND"
    assert put["answer"]["results"] == [{"id": "driven", "state": "created", "chunk_count": 1}]
    assert gone == {"answer": {"deleted": ["driven"], "missing": []}}


def test_the_driver_asks_a_gateway(ask: Ask, gateway: Gateway) -> None:
    called, types, tool, servers = ask(
        *(gateway.url, gateway.token),
        ("tools.call", {"id": "plain__add", "arguments": {"a": 2, "b": 40}}),
        ("tools.types", {"names": ["plain"]}),
        ("tools.get", {"id": "plain__add"}),
        ("servers.list", {"page_size": 1}),
    )
    assert called["answer"]["structured_content"] == {"sum": 42}
    assert "export const tools" in types["answer"]["module"]
    assert tool["answer"]["server"] == "plain"
    assert [server["name"] for server in servers["answer"]["results"]] == ["filesystem", "plain"]
