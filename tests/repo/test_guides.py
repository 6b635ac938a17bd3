"""The guides run unchanged from top to bottom, each in a fresh environment."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.repo.shell_pages import (
    GATEWAY_PRELUDE,
    ROOT,
    SERVICE_PRELUDE,
    code_of,
    contains,
    finished,
    gateway_environment,
    json_values,
    service_environment,
)

GUIDES = ROOT / "docs" / "guides"
# Expected output of each section with commands. A section that is not listed fails.
SAID = {
    "knowledge": {
        "Start": ["skills loaded", "0 left"],
        "Fill the library": ["3 added", "3 unchanged"],
        "Ask": ["What is kept on disk", '"title":"Skills"'],
        "In your agents": ["chunk_id 63686e6b"],
    },
    "documents": {
        "Start": ["skills loaded", "0 left"],
        "Tokens": ["keys/signing-key.json", "keys/jwks.json"],
        "Put and search": ["2 created", "Skills", "Thirty days a year.", "documents:write"],
        "In your agents": ["glossary", "authorization_servers"],
        "When a tenant leaves": ["acme", "1 documents written to other.jsonl", "and all records of tenant"],
    },
    "tool-registry": {
        "Start": ["skills loaded"],
        "Take tools in": ["44 added", "44 items indexed", "calendar_management", "human"],
        "Ask": ['"status":"ready"', "create_event"],
        "In your agents": ["trains"],
        "When a tool changes": [
            "0 added, 0 changed, 43 unchanged, 1 held",
            "calendar__create_event",
            "-Schedule a meeting: title",
            "+Schedule a meeting and tell everybody: title",
            "is approved",
            "1 items indexed",
            "44 items, 44 points: 0 missing",
        ],
        "When a source goes": ["44 added", "trial", "44 tools of source trial removed"],
    },
    "many-tools": {
        "Take over what you have": ["filesystem", "memory"],
        "Ask": ["filesystem__read_file"],
        "In your agent": ["cursor"],
        "One gateway for everything": ["memory__", "structuredContent"],
    },
}
SECTION = "=== section: "


def page(name: str) -> str:
    return (GUIDES / f"{name}.md").read_text("utf-8")


def answer_of(text: str) -> Any:
    """Return the answer in the guide, if it shows one."""
    output = text.split("\nThe answer, shortened")
    return json.loads(code_of(output[1], "json")[0]) if len(output) > 1 else None


def sections(name: str) -> dict[str, str]:
    """Return the commands of each section that has any."""
    _, *parts = page(name).split("\n## ")
    scripts = {part.splitlines()[0]: "\n".join(code_of(part, "sh")) for part in parts}
    return {title: script for title, script in scripts.items() if script}


def whole_script(name: str) -> str:
    """Return one script of all sections; the output of each follows its title."""
    titled = {f"echo '{SECTION}{title}'; echo '{SECTION}{title}' >&2": sh for title, sh in sections(name).items()}
    return "\n".join(f"{message}\n{script}" for message, script in titled.items())


def unsaid(name: str, *outputs: str) -> dict[str, list[str]]:
    """Return the expected texts that are missing from the output."""
    parts = [dict(part.split("\n", 1) for part in output.split(SECTION)[1:]) for output in outputs]
    missing = {
        title: [item for item in expected if not any(item in displayed[title] for displayed in parts)]
        for title, expected in SAID[name].items()
    }
    return {title: left for title, left in missing.items() if left}


@pytest.mark.parametrize("path", sorted(GUIDES.glob("*.md")), ids=lambda path: path.stem)
def test_every_section_that_runs_something_is_expected_to_show_something(path: Path) -> None:
    assert {title: bool(message) for title, message in SAID[path.stem].items()} == dict.fromkeys(
        sections(path.stem), True
    )


@pytest.mark.nightly
@pytest.mark.requirement("KN-003")
@pytest.mark.parametrize("name", sorted(SAID.keys() - {"many-tools"}))
async def test_the_guide_works_as_written(
    name: str, installation: Installation, port: str, tmp_path: Path
) -> None:
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    environment = service_environment(installation.environment, port)
    output, errors = await finished(SERVICE_PRELUDE + whole_script(name), environment, tmp_path, tmp_path)
    expected = answer_of(page(name))
    assert any(
        isinstance(json_value, dict) and contains(json_value, expected) for json_value in json_values(output)
    ), output
    assert unsaid(name, output, errors) == {}, output


async def test_the_guide_to_many_tools_works_as_written(
    home: Path, port: str, model_folder: str, tmp_path: Path
) -> None:
    environment = gateway_environment(home, port, model_folder)
    script = GATEWAY_PRELUDE + whole_script("many-tools")
    output, errors = await finished(script, environment, tmp_path, home)
    assert unsaid("many-tools", output, errors) == {}, output
    assert "export const tools" in (home / "tools.ts").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(GUIDES.glob("*.md")), ids=lambda path: path.stem)
def test_every_json_of_a_guide_can_be_read_and_every_client_is_named(path: Path) -> None:
    text = path.read_text("utf-8")
    for output in code_of(text, "json"):
        json.loads(output)
    assert [client for client in ("Claude", "Cursor", "VS Code") if client not in text] == []
