"""Every command on an installation without extras: those of the service report it in one line."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.repo.sources import ROOT
from toolscript.cli.app import MEASURING, YOURS

# Packages that `pip install toolscript` alone does not install.
BLOCKER = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
MODULES = {"pyyaml": "yaml", "qdrant-client": "qdrant_client", "prometheus-client": "prometheus_client"}
NEED_IT = (
    *("migrate", "sync", "worker --drain", "reindex", "serve", "changes list", "skills list", "tenants list"),
    *("ingest x", "doctor --index", "sources list", "library list", "tools list", "serve --demo"),
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split(r"[\[<>=]", item)[0] for item in project["optional-dependencies"]["service"]}
    kept = {re.split(r"[\[<>=]", item)[0] for item in project["dependencies"]}
    absent = {MODULES.get(name, name.replace("-", "_")) for name in names - kept}
    absent |= {"psycopg_pool", "grpc", "opentelemetry", "bson", "markdown_it"}
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(BLOCKER.format(absent=absent), "utf-8")
    own = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSCRIPT_")}
    return {**own, "PYTHONPATH": str(folder), "HOME": str(folder)}


@pytest.mark.parametrize("words", NEED_IT)
def test_a_command_of_the_service_reports_the_missing_extra_in_two_lines(
    bare: dict[str, str], words: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolscript", *words.split()],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: this command needs the service, which is not installed")
    assert hint == "hint: pip install 'toolscript[service]'"


def test_commands_of_the_gateway_need_no_extra(bare: dict[str, str], tmp_path: Path) -> None:
    for words in (["list-servers"], ["config", "import", "--dry-run"], ["gateway", "status"], ["trust", "--list"]):
        done = subprocess.run(
            [sys.executable, "-m", "toolscript", *words],
            env=bare,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr


def test_help_has_three_panels(bare: dict[str, str]) -> None:
    output = subprocess.run(
        [sys.executable, "-m", "toolscript", "--help"], env=bare, capture_output=True, text=True, check=True
    ).stdout
    _, *panels = re.split(r"^(?:Your tools|The service .*|Measuring):$", output, flags=re.MULTILINE)
    yours, service, measuring = (re.findall(r"^  ([a-z-]+)  ", panel, re.MULTILINE) for panel in panels)
    assert yours == [*YOURS]
    assert {"serve", "worker", "sync", "skills"} <= {*service}
    assert measuring == [*MEASURING]
    assert "..." not in "".join(panels)
