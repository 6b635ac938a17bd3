"""A misspelt variable is named: an operator who sets TOOLSCRIPT_ADMIN_TOKN has no token."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def stderr_of(command: list[str], folder: Path, **variables: str) -> str:
    """What a command says in an environment without any other setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")}
    environment = {**kept, "HOME": str(folder), **variables}
    called = [sys.executable, "-m", "toolscript", *command]
    return subprocess.run(called, env=environment, cwd=folder, capture_output=True, text=True, check=False).stderr


def test_the_service_names_a_misspelt_setting_and_what_it_may_mean(tmp_path: Path) -> None:
    said = stderr_of(["changes", "list"], tmp_path, TOOLSCRIPT_ADMIN_TOKN="secret-value", TOOLSCRIPT_WHATEVER="1")
    assert "TOOLSCRIPT_ADMIN_TOKN is not a setting and has no effect; did you mean TOOLSCRIPT_ADMIN_TOKEN?" in said
    assert "TOOLSCRIPT_WHATEVER is not a setting" in said
    assert "secret-value" not in said


def test_the_gateway_names_a_misspelt_setting_of_its_own(tmp_path: Path) -> None:
    said = stderr_of(
        ["list-servers"], tmp_path, TOOLSCRIPT_GATEWAY_TOKN="secret-value", TOOLSCRIPT_POSTGRES_URL="p"
    )
    assert said.count("did you mean TOOLSCRIPT_GATEWAY_TOKEN?") == 1
    assert "TOOLSCRIPT_POSTGRES_URL" not in said
    assert "secret-value" not in said


def test_nothing_is_said_of_settings_that_exist(tmp_path: Path) -> None:
    said = stderr_of(
        ["changes", "list"],
        tmp_path,
        TOOLSCRIPT_POSTGRES_URL="postgresql://nobody@127.0.0.1:1/none",
        TOOLSCRIPT_SEARCH_MODEL="m",
        TOOLSCRIPT_TOKEN="t",
        TOOLSCRIPT_TEST_MODEL="m",
    )
    assert "is not a setting" not in said
