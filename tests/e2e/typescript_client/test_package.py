"""The packed TypeScript client, in a fresh project, against a real service and gateway."""

import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import httpx2
import pytest

from tests.e2e.gateway.machines import Gateway
from tests.e2e.typescript_client.conftest import Demo
from tests.e2e.typescript_client.package import CLIENT, ROOT, deno, run, tsc
from toolscript.core.version import __version__

pytestmark = pytest.mark.requirement("AP-003")

CONSUMER = Path(__file__).with_name("consumer.ts")
EXPECTED = {
    "tools": 40,
    "unique": 40,
    "found": ["create_event"],
    "skills": 34,
    "put": {"created": 1, "updated": 0, "unchanged": 0, "refused": 0},
    "whales": "whales",
    "text": "Whales are mammals.",
    "deleted": {"deleted": ["whales"], "missing": ["unicorns"]},
    "source": "Compost",
    "hit": "plain__add",
    "sum": {"sum": 42},
    "failed": True,
    "servers": ["filesystem", "plain"],
    "add": ["plain__add", "plain", True],
    "types": True,
    "health": ["ready", True],
    "codes": ["NOT_FOUND", "VALIDATION_ERROR", "UNAUTHORIZED", "NOT_FOUND"],
}
STRICT = ("--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022")
# Operations that others do: `delete_documents` deletes one, too.
UNUSED = {"delete_document"}
GENERATE = """
import json, sys, typescript_types
from pathlib import Path
document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
sys.stdout.write(typescript_types.module_text(document, sys.argv[2]))
"""


def addresses(demo: Demo, gateway: Gateway) -> dict[str, str]:
    return {
        "SERVICE_URL": demo.url,
        "SERVICE_TOKEN": demo.token,
        "GATEWAY_URL": gateway.url,
        "GATEWAY_TOKEN": gateway.token,
    }


def test_the_tarball_has_the_built_client_and_its_pages_alone(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        data = archive.extractfile("package/package.json")
        assert data is not None
        package = json.load(data)
    assert {name for name in names if not name.startswith("dist/")} == {"LICENSE", "README.md", "package.json"}
    assert {Path(name).suffixes[-1] for name in names if name.startswith("dist/")} == {".js", ".ts"}
    assert "dependencies" not in package
    assert "peerDependencies" not in package
    assert package["version"] == __version__
    assert package["name"] != "toolscript", "scripts of the gateway import a module of this name"


def test_the_license_is_that_of_the_project() -> None:
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("resolution", ["nodenext", "bundler"])
def test_a_strict_project_compiles_and_runs_on_node(
    project: Path, demo: Demo, gateway: Gateway, resolution: str
) -> None:
    shutil.copy(CONSUMER, project / "main.ts")
    module = "nodenext" if resolution == "nodenext" else "esnext"
    run(tsc(), *STRICT, "--module", module, "--moduleResolution", resolution, "main.ts", cwd=project)
    printed = run("node", "main.js", cwd=project, environment=addresses(demo, gateway))
    assert json.loads(printed) == EXPECTED


def test_a_project_is_checked_and_runs_on_deno(project: Path, demo: Demo, gateway: Gateway) -> None:
    shutil.copy(CONSUMER, project / "main.ts")
    rights = ["--no-prompt", "--allow-net=127.0.0.1", "--allow-env", "--node-modules-dir=manual", "--check"]
    printed = deno("run", *rights, "main.ts", cwd=project, environment=addresses(demo, gateway))
    assert json.loads(printed) == EXPECTED


def test_the_sources_run_on_deno_without_a_build(tmp_path: Path, demo: Demo) -> None:
    shutil.copytree(CLIENT / "src", tmp_path / "src")
    script = f"""
        import {{ Client }} from "./src/index.ts";
        const client = new Client({{ url: "{demo.url}" }});
        console.log((await client.tools.search("schedule a meeting")).results[0]?.name);
    """
    (tmp_path / "main.ts").write_text(script, "utf-8")
    assert deno("run", "--allow-net=127.0.0.1", "--check", "main.ts", cwd=tmp_path) == "create_event\n"


@pytest.mark.parametrize("name", ["service", "gateway"])
def test_the_types_are_those_of_the_running_server(
    name: str, tmp_path: Path, demo: Demo, gateway: Gateway
) -> None:
    url = {"service": demo.url, "gateway": gateway.url}[name]
    document = tmp_path / "openapi.json"
    document.write_bytes(httpx2.get(f"{url}/openapi.json", trust_env=False, verify=False).content)
    printed = run(sys.executable, "-c", GENERATE, document, name, cwd=ROOT / "scripts")
    assert printed == (CLIENT / "src" / "api" / f"{name}.ts").read_text("utf-8")


def test_the_client_sends_every_operation_of_both_apis() -> None:
    written = "".join(path.read_text("utf-8") for path in (CLIENT / "src").glob("*.ts"))
    listed = [(CLIENT / "src" / "api" / f"{name}.ts").read_text("utf-8") for name in ("service", "gateway")]
    operations = {name for text in listed for name in re.findall(r'^  (\w+): \{ method: "', text, re.MULTILINE)}
    assert len(operations) > 40
    assert {name for name in operations if f'"{name}"' not in written} == UNUSED


def test_the_lock_file_names_no_registry_and_has_every_hash() -> None:
    packages = json.loads((CLIENT / "package-lock.json").read_text("utf-8"))["packages"]
    named = {name: entry for name, entry in packages.items() if name}
    assert named
    assert [name for name, entry in named.items() if "resolved" in entry or "integrity" not in entry] == []
