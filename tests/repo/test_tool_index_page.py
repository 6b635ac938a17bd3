"""The page about the library runs from top to bottom, and prints what it shows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.shell_pages import code_of, gateway_environment, page

PAGE = page("docs/tool-index.md")


@pytest.mark.requirement("AP-002")
def test_the_page_prints_what_it_shows(model_folder: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(code_of(PAGE, "python")), "utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env=gateway_environment(tmp_path, "0", model_folder),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(code_of(PAGE, "text"))
