"""What the TypeScript client does when a server is busy, slow or gone: its own tests, and a real service."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.e2e.tenants.service import SOON, Service, served
from tests.e2e.typescript_client.conftest import Demo
from tests.e2e.typescript_client.package import built, deno, run

pytestmark = pytest.mark.requirement("AP-003")

PUT_MANY = Path(__file__).with_name("put_many.mjs")
MANY = 500


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("faults"))


def test_the_faults_of_servers_are_handled_on_node(client: Path) -> None:
    printed = run("node", "--test", "--test-reporter=tap", "test/faults.test.mjs", cwd=client)
    assert int(re.findall(r"^# pass (\d+)$", printed, re.MULTILINE)[0]) > 30


def test_the_faults_of_servers_are_handled_on_deno(client: Path) -> None:
    rights = ["--no-prompt", "--no-check", "--allow-net=127.0.0.1", "--allow-read=."]
    printed = deno("test", *rights, "test/faults.test.mjs", cwd=client)
    assert int(re.findall(r"(\d+) passed \| 0 failed", printed)[0]) > 30


CHANGING = """
import { Client } from "toolscript-client";

const client = new Client({ url: process.env.SERVICE_URL, token: process.env.SERVICE_TOKEN });
const put = (...ids) => client.documents.put(ids.map((id) => ({ id: `page-${id}`, text: `Page ${id}.` })));
const seen = [];
await put(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
for await (const page of client.documents.list({ page_size: 3 }).pages()) {
  seen.push(...page.results.map((document) => document.id));
  if (seen.length > 3) continue;
  // What is still to come goes, what was listed goes, and something new comes.
  const ahead = (await client.documents.list({ cursor: page.next_cursor, page_size: 2 }).all())[0].id;
  await client.documents.delete([seen[0], seen[2], ahead]);
  await put("new");
  console.log(JSON.stringify({ gone: ahead }));
}
const left = (await client.documents.list().all()).map((document) => document.id);
console.log(JSON.stringify({ seen, left }));
"""


def test_a_list_goes_on_when_its_pages_change(project: Path, demo: Demo) -> None:
    (project / "changing.mjs").write_text(CHANGING, "utf-8")
    environment = {"SERVICE_URL": demo.url, "SERVICE_TOKEN": demo.token}
    gone, lists = map(json.loads, run("node", "changing.mjs", cwd=project, environment=environment).splitlines())
    seen = lists["seen"]
    assert len(seen) == len(set(seen)), "nothing is listed twice"
    assert gone["gone"] not in seen
    assert [document for document in lists["left"] if document not in {*seen, "page-new"}] == []


@pytest.fixture
def service(installation: Installation) -> Iterator[tuple[Service, dict[str, str]]]:
    with served(installation) as (service, issuer):
        yield service, {"SERVICE_URL": service.url, "SERVICE_TOKEN": issuer.token("acme")}


def start_put(project: Path, environment: dict[str, str], retries: int) -> "subprocess.Popen[str]":
    """Start a put that has sent its first documents, and waits for a line before it reads more of them."""
    (project / "put.mjs").write_text(PUT_MANY.read_text("utf-8"), "utf-8")
    process = subprocess.Popen(
        ["node", "put.mjs", str(MANY), str(retries)],
        cwd=project,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    return process


def result_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    output, _ = process.communicate("\n", timeout=SOON)
    assert process.returncode == 0
    return dict(json.loads(output))


def test_a_put_goes_on_when_the_service_comes_back(service: tuple[Service, dict[str, str]], project: Path) -> None:
    killed, environment = service
    with start_put(project, environment, retries=8) as process:
        killed.kill()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        killed.start()
        put = result_of(process)
    assert put == {"counts": {"created": MANY, "updated": 0, "unchanged": 0, "refused": 0}, "ids": MANY}


@pytest.mark.nightly
def test_a_put_that_lost_its_service_says_what_is_stored_and_can_be_repeated(
    service: tuple[Service, dict[str, str]], project: Path
) -> None:
    killed, environment = service
    with start_put(project, environment, retries=0) as process:
        killed.kill()
        lost = result_of(process)
    stored = {"created": 200, "updated": 0, "unchanged": 0, "refused": 0}
    assert lost == {"code": "UNAVAILABLE", "acknowledged": stored}
    killed.start()
    with start_put(project, environment, retries=0) as process:
        again = result_of(process)
    assert again == {"counts": {**stored, "created": MANY - 200, "unchanged": 200}, "ids": MANY}
