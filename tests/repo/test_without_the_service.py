"""Every command on an installation without extras: those of the service report it in one line, and a search is
answered by the built-in model."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import mcp_server
from tests.repo.sources import ROOT
from toolscript.cli.app import YOURS

# Packages that `pip install toolscript` alone does not install.
BLOCKER = """
import sys
from importlib.machinery import PathFinder
class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_absent = any(f"{{name}}.".startswith(f"{{other}}.") for other in {absent!r})
        return None if is_absent else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Present
"""
# Most of what these extras weigh comes with their libraries.
OF_EXTRAS = {
    *(
        "fastembed",
        "onnxruntime",
        "tokenizers",
        "huggingface-hub",
        "hf-xet",
        "httpx",
        "pillow",
        "protobuf",
        "requests",
    ),
    *("pydantic-settings", "pyyaml", "structlog", "fastapi", "sqlalchemy", "grpcio"),
}
MODULES = {"pyyaml": "yaml", "qdrant-client": "qdrant_client", "prometheus-client": "prometheus_client"}
NEED_IT = (
    *("migrate", "sync", "worker --drain", "reindex", "serve", "changes list", "skills list", "tenants list"),
    *("ingest x", "doctor --index", "sources list", "library list", "tools list", "serve --demo"),
)


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=]", requirement)[0]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {_name(item) for extra in ("service", "model") for item in extras[extra]}
    kept = {"toolscript", *map(_name, project["dependencies"])}
    absent = {MODULES.get(name, name.replace("-", "_")) for name in names - kept}
    absent |= {"psycopg_pool", "grpc", "opentelemetry.sdk", "bson", "huggingface_hub", "PIL", "httpx"}
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(BLOCKER.format(absent=absent), "utf-8")
    own = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSCRIPT_")}
    return {**own, "PYTHONPATH": str(folder), "HOME": str(folder), "TOOLSCRIPT_GATEWAY_ON_DEMAND": "false"}


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


def _search(bare: dict[str, str], folder: Path, *options: str) -> tuple[dict[str, object], str]:
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"plain": mcp_server("plain")}}), "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "toolscript",
            "search",
            "add two numbers",
            "--json",
            "--config",
            str(config),
            *options,
        ],
        env={**bare, "TOOLSCRIPT_DATA_DIR": str(folder / "data")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer, done.stderr


@pytest.mark.parametrize("model", ["", "BAAI/bge-base-en-v1.5", str(ROOT / "tests")])
def test_without_a_model_runtime_the_built_in_model_answers_and_one_line_says_what_to_install(
    bare: dict[str, str], tmp_path: Path, model: str
) -> None:
    answer, messages = _search(bare, tmp_path, *(("--model", model) if model else ()))
    assert (answer["semantic"], answer["model"]) == (True, "builtin")
    assert "pip install 'toolscript[model]'" in str(answer["hint"])
    assert "\n" not in str(answer["hint"])
    assert "warning" not in messages


def test_who_chose_the_built_in_model_is_told_of_no_other(bare: dict[str, str], tmp_path: Path) -> None:
    answer, _ = _search(bare, tmp_path, "--model", "builtin")
    assert (answer["model"], answer.get("hint", "")) == ("builtin", "")


def test_the_doctor_finds_nothing_to_fix_in_an_installation_without_a_model_runtime(
    bare: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolscript", "doctor", "--json"],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {finding["code"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["MODEL"]["ok"] is True
    assert "toolscript[model]" in found["MODEL"]["message"]


def test_the_tools_of_a_program_are_searched_without_a_model_runtime(bare: dict[str, str], tmp_path: Path) -> None:
    program = """
from toolscript import ToolIndex
def add(a: int, b: int) -> int:
    "Adds two numbers"
def mail(to: str) -> None:
    "Sends a mail"
index = ToolIndex.from_tools([add, mail])
print(index.model.name, index.search("add numbers").hits[0].name)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=bare, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["builtin", "add"], done.stderr
    (line,) = done.stderr.splitlines()
    assert "pip install 'toolscript[model]'" in line


def test_the_lock_of_the_gateway_has_none_of_the_libraries_of_the_extras() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert OF_EXTRAS & set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)) == set()


def test_help_has_two_panels(bare: dict[str, str]) -> None:
    output = subprocess.run(
        [sys.executable, "-m", "toolscript", "--help"], env=bare, capture_output=True, text=True, check=True
    ).stdout
    _, *panels = re.split(r"^(?:Your tools|The service .*):$", output, flags=re.MULTILINE)
    yours, service = (re.findall(r"^  ([a-z-]+)  ", panel, re.MULTILINE) for panel in panels)
    assert yours == [*YOURS]
    assert {"serve", "worker", "sync", "skills"} <= {*service}
    assert "..." not in "".join(panels)


def test_eval_names_the_program_that_measures_quality(bare: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "toolscript", "eval", "--dataset", "my set", "--json"],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    error = json.loads(ended.stderr)["error"]
    assert "toolscript-eval" in error["message"]
    hint = error["details"]["hint"]
    assert "pip install toolscript-eval" in hint
    assert "`toolscript-eval --dataset 'my set' --json`" in hint
