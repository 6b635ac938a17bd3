"""A misspelt variable causes a warning: an operator who sets TOOLSCRIPT_ADMIN_TOKN has no token."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def stderr_of(command: list[str], folder: Path, **variables: str) -> str:
    """Return the stderr of a command in an environment without any other setting."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")}
    environment = {**inherited, "HOME": str(folder), "TOOLSCRIPT_GATEWAY_ON_DEMAND": "false", **variables}
    arguments = [sys.executable, "-m", "toolscript", *command]
    return subprocess.run(
        arguments, env=environment, cwd=folder, capture_output=True, text=True, check=False
    ).stderr


def test_the_service_warns_of_a_misspelt_setting_and_suggests_another(tmp_path: Path) -> None:
    stderr = stderr_of(
        ["changes", "list"], tmp_path, TOOLSCRIPT_ADMIN_TOKN="secret-value", TOOLSCRIPT_WHATEVER="1"
    )
    assert (
        "TOOLSCRIPT_ADMIN_TOKN is not a setting and has no effect; did you mean TOOLSCRIPT_ADMIN_TOKEN?" in stderr
    )
    assert "TOOLSCRIPT_WHATEVER is not a setting" in stderr
    assert "secret-value" not in stderr


def test_the_gateway_warns_of_a_misspelt_setting(tmp_path: Path) -> None:
    stderr = stderr_of(
        ["list-servers"], tmp_path, TOOLSCRIPT_GATEWAY_TOKN="secret-value", TOOLSCRIPT_POSTGRES_URL="p"
    )
    assert stderr.count("did you mean TOOLSCRIPT_GATEWAY_TOKEN?") == 1
    assert "TOOLSCRIPT_POSTGRES_URL" not in stderr
    assert "secret-value" not in stderr


def test_existing_settings_cause_no_warning(tmp_path: Path) -> None:
    stderr = stderr_of(
        ["changes", "list"],
        tmp_path,
        TOOLSCRIPT_POSTGRES_URL="postgresql://nobody@127.0.0.1:1/none",
        TOOLSCRIPT_SEARCH_MODEL="m",
        TOOLSCRIPT_TOKEN="t",
        TOOLSCRIPT_TEST_MODEL="m",
    )
    assert "is not a setting" not in stderr
