"""The first search of docs/documents.md is run as it stands."""

import json
import os
import sys
from pathlib import Path

from tests.conftest import Installation
from tests.house.shell_pages import ROOT, code_of, contains, json_values, run
from tests.kept_ports import kept_port

PAGE = (ROOT / "docs" / "documents.md").read_text("utf-8")
FIRST_SEARCH = PAGE.split("\n## A first search\n")[1].split("\n## Putting\n")[0]
PRELUDE = """
trap 'test -z "${SERVER:-}" || kill "$SERVER" 2>/dev/null || true' EXIT
toolscript migrate --down-to base
"""


async def test_the_first_document_is_found_as_written(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    with kept_port() as port:
        environment = {
            **os.environ,
            **installation.environment,
            "TOOLSCRIPT_PORT": str(port),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        script = PRELUDE + "\n".join(code_of(FIRST_SEARCH, "sh"))
        code = await run(script, environment, tmp_path / "page.out", tmp_path)
    output = (tmp_path / "page.out").read_text("utf-8")
    assert code == 0, output + (tmp_path / "page.err").read_text("utf-8")
    assert contains(json_values(output)[-1], json.loads(code_of(FIRST_SEARCH, "json")[0])), output
    assert "documents.md" in output
