"""The guides are run from top to bottom as they stand, each by somebody who has just begun."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.house.shell_pages import ROOT, code_of, contains, json_values, run
from tests.house.test_readme import GATEWAY_PRELUDE, PRELUDE, home, port

__all__ = ["home", "port"]

GUIDES = ROOT / "docs" / "guides"
# What each is for, beside ending well.
SAID = {
    "knowledge": ["3 added", "3 unchanged", "chunk_id 63686e6b", '"title":"Skills"'],
    "documents": ["documents:write", "Skills", "authorization_servers", "other.jsonl"],
    "tool-registry": ["calendar_management", "create_event", "trains"],
}


def page(name: str) -> str:
    return (GUIDES / f"{name}.md").read_text("utf-8")


def answer_of(text: str) -> Any:
    """The answer that the guide shows, if it shows one."""
    shown = text.split("\nThe answer, shortened")
    return json.loads(code_of(shown[1], "json")[0]) if len(shown) > 1 else None


async def finished(script: str, environment: dict[str, str], folder: Path) -> str:
    code = await run(script, environment, folder / "page.out", folder)
    output = (folder / "page.out").read_text("utf-8")
    assert code == 0, output + (folder / "page.err").read_text("utf-8")
    return output


@pytest.mark.requirement("KN-003")
@pytest.mark.parametrize("name", SAID)
async def test_the_guide_works_as_written(
    name: str, installation: Installation, port: str, tmp_path: Path
) -> None:
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    environment = {
        **os.environ,
        **installation.environment,
        "TOOLSCRIPT_PORT": port,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    output = await finished(PRELUDE + "\n".join(code_of(page(name), "sh")), environment, tmp_path)
    wanted = answer_of(page(name))
    assert any(isinstance(one, dict) and contains(one, wanted) for one in json_values(output)), output
    assert [said for said in SAID[name] if said not in output] == [], output


async def test_the_guide_to_many_tools_works_as_written(
    home: Path, port: str, model_folder: str, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TOOLSCRIPT_", "XDG_"))},
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TOOLSCRIPT_GATEWAY_PORT": port,
        "TOOLSCRIPT_SEARCH_MODEL": model_folder,
    }
    output = await finished(GATEWAY_PRELUDE + "\n".join(code_of(page("many-tools"), "sh")), environment, home)
    for said in ("filesystem__read_file", "memory__", "structuredContent"):
        assert said in output
    assert "export const tools" in (home / "tools.ts").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(GUIDES.glob("*.md")), ids=lambda path: path.stem)
def test_every_json_of_a_guide_can_be_read_and_every_client_is_named(path: Path) -> None:
    text = path.read_text("utf-8")
    for shown in code_of(text, "json"):
        json.loads(shown)
    assert [client for client in ("Claude", "Cursor", "VS Code") if client not in text] == []
