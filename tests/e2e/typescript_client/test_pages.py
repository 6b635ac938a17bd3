"""The examples of docs/typescript.md and of the package's README compile, run and print what they say."""

import re
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Gateway
from tests.e2e.typescript_client.conftest import Demo
from tests.e2e.typescript_client.package import CLIENT, ROOT, run, tsc
from tests.repo.shell_pages import code_of

pytestmark = pytest.mark.requirement("AP-003")

PAGES = {"page": ROOT / "docs" / "typescript.md", "readme": CLIENT / "README.md"}
NODE = "declare const process: { env: { [name: string]: string | undefined } };\n"
PRINTED = re.compile(r"console\.log\(.*\); // (.+)$", re.MULTILINE)


def program(page: str) -> str:
    """Return one program of all examples: the first imports and declares, the others have a scope each."""
    first, *rest = code_of(page, "ts")
    return NODE + first + "".join(f"{{\n{block}}}\n" for block in rest)


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_print_what_they_say(name: str, project: Path, demo: Demo, gateway: Gateway) -> None:
    page = PAGES[name].read_text("utf-8")
    (project / "page.ts").write_text(program(page), "utf-8")
    run(tsc(), "--strict", "--target", "es2022", "--module", "nodenext", "page.ts", cwd=project)
    environment = {
        "TOOLSCRIPT_SERVICE_URL": demo.url,
        "TOOLSCRIPT_TOKEN": demo.token,
        "TOOLSCRIPT_GATEWAY_URL": gateway.url,
        "TOOLSCRIPT_GATEWAY_TOKEN": gateway.token,
    }
    lines = iter(run("node", "page.js", cwd=project, environment=environment).splitlines())
    expected = [text for block in code_of(page, "ts") for text in PRINTED.findall(block)]
    assert len(expected) >= 3
    # In this order; examples may print more.
    assert [text for text in expected if text not in lines] == []
