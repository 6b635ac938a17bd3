"""`toolscript serve --demo` as a process: one command, no engine, no model, no network."""

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.commands import WAIT_SECONDS, command, environment, run
from toolscript.server.demo_contents import read_contents

pytestmark = pytest.mark.slow

MAX_CPU_SECONDS = 5.0
# The machine may be slower than the one used for the measurement, and its caches may be cold.
GENEROUS = 4
# No process listens there: any call to an engine, an endpoint or a proxy fails.
NOWHERE = "127.0.0.1:9"
CUT_OFF = {
    "TOOLSCRIPT_POSTGRES_URL": f"postgresql://nobody@{NOWHERE}/nothing",
    "TOOLSCRIPT_QDRANT_URL": f"http://{NOWHERE}",
    "TOOLSCRIPT_MONGO_URL": f"mongodb://{NOWHERE}",
    "TOOLSCRIPT_EMBEDDING_URL": f"http://{NOWHERE}/v1",
    "HTTPS_PROXY": f"http://{NOWHERE}",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class Demo:
    """`cpu_seconds`: CPU time of the process up to its first response."""

    process: "subprocess.Popen[bytes]"
    address: str
    shown: str
    first: dict[str, Any]
    cpu_seconds: float

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def post(self, path: str, body: object, token: str = "") -> httpx2.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.post(self.address + path, json=body, headers=headers, timeout=WAIT_SECONDS, trust_env=False)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.address + path, headers=headers, timeout=WAIT_SECONDS, trust_env=False)


@contextmanager
def demo_running(**extra: str) -> Iterator[Demo]:
    with tempfile.TemporaryFile("w+") as log:
        arguments = command("serve", "--demo", "--port", "0")
        process = subprocess.Popen(arguments, env=environment(extra), stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            output = ""
            while "Ctrl+C" not in output:
                line = process.stdout.readline().decode()
                assert line, f"it ended: {output}{log.seek(0) or log.read()}"
                output += line
            address = output.split()[2]
            body = {"query": "schedule a calendar event"}
            first = httpx2.post(f"{address}/api/v1/search", json=body, timeout=WAIT_SECONDS, trust_env=False)
            yield Demo(process, address, output, first.json(), _cpu_seconds(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_SECONDS)
            if process.stdout is not None:
                process.stdout.close()


def _cpu_seconds(pid: int) -> float:
    """Return user and system CPU time of a running process; 0 where the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with demo_running(**CUT_OFF) as running:
        yield running


def test_the_demo_finds_a_tool_with_its_arguments(demo: Demo) -> None:
    best = demo.first["tools"][0]
    assert (best["server"], best["name"]) == ("calendar", "create_event")
    assert best["input_schema"]["required"] == ["title", "start", "end"]
    assert demo.first["metadata"]["good_match"] is True
    assert demo.first["metadata"]["degraded"] == []


def test_the_demo_routes_by_skills(demo: Demo) -> None:
    assert demo.first["metadata"]["strategy_used"] == "hierarchical"
    assert demo.first["metadata"]["skill_ids_used"] == ["calendar_management"]
    assert demo.get("/api/v1/skills/calendar_management").json()["tool_count"] >= 3


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("write release notes", ("prompt", "write_release_notes")),
        ("all tables of the database with their columns", ("resource", "schema://tables")),
        ("refund a customer", ("tool", "refund_payment")),
    ],
)
def test_the_demo_finds_each_kind_of_item(demo: Demo, query: str, best: tuple[str, str]) -> None:
    result = demo.post("/api/v1/search", {"query": query, "limit": 1}).json()["tools"][0]
    assert (result["type"], result["name"]) == best


def test_a_query_without_a_matching_tool_is_no_good_match(demo: Demo) -> None:
    assert demo.post("/api/v1/search", {"query": "zyx qwv"}).json()["metadata"]["good_match"] is False


def test_the_library_answers_with_its_sources(demo: Demo) -> None:
    best = demo.post("/search_knowledge", {"query": "my compost heap smells"}).json()["results"][0]
    assert "too wet" in best["content"]
    assert (best["source"]["title"], best["source"]["position"]["section"]) == ("Compost", "When it smells")


def test_documents_are_found_with_the_token_shown_and_not_without_it(demo: Demo) -> None:
    body = {"query": "how many days of holiday", "top_k": 1}
    assert demo.post("/search", body).status_code == 401
    assert demo.post("/search", body, "x.y.z").status_code == 401
    assert demo.post("/search", body, _token(demo)).json()["hits"][0]["doc_id"] == "handbook-holiday"


def test_the_tenant_may_put_a_document_and_finds_it(demo: Demo) -> None:
    put = {"documents": [{"id": "own", "text": "The espresso machine is descaled on Thursdays."}]}
    headers = {"authorization": f"Bearer {_token(demo)}"}
    answer = httpx2.put(f"{demo.address}/documents", json=put, headers=headers, trust_env=False)
    assert answer.status_code == 200, answer.text
    result = demo.post("/search", {"query": "when is the espresso machine descaled", "top_k": 1}, _token(demo))
    assert result.json()["hits"][0]["doc_id"] == "own"


def test_the_catalog_is_read_only(demo: Demo) -> None:
    assert demo.post("/api/v1/jobs", {"source": "x", "items": []}).status_code == 403


@pytest.mark.parametrize("with_token", [False, True])
def test_mcp_offers_documents_to_the_tenant_alone(demo: Demo, with_token: bool) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    headers |= {"authorization": f"Bearer {_token(demo)}"} if with_token else {}
    answer = httpx2.post(
        f"{demo.address}/mcp", json=request, headers=headers, timeout=WAIT_SECONDS, trust_env=False
    )
    names = set(re.findall(r'"name":"(\w+)"', answer.text))
    assert {"search_tools", "search_knowledge"} <= names
    assert ("search_documents" in names) == with_token


def test_the_page_describes_the_demo_with_the_same_commands_as_the_terminal(demo: Demo) -> None:
    page = demo.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = unescape(page.text)
    assert "without an engine: 40 tools, prompts and resources, 8 documents" in text
    assert [item for item in _commands(demo.shown) if item not in text] == []
    assert len(_commands(demo.shown)) == 5
    assert "toolscript migrate" in text
    assert demo.get("/docs").status_code == 200


def test_the_tour_says_what_similarity_means_without_a_model(demo: Demo) -> None:
    assert "vectors are hashes of the words" in demo.shown


def test_the_commands_shown_run_unchanged_in_a_shell(demo: Demo) -> None:
    done = subprocess.run(
        ["bash", "-e", "-c", "; echo; ".join(item for item in _commands(demo.shown) if "toolscript" not in item)],
        env=environment({"no_proxy": "*"}),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    tools, knowledge, documents = (json.loads(line) for line in done.stdout.splitlines() if line)
    assert tools["results"][0]["name"] == "create_event"
    assert knowledge["results"][0]["source"]["title"] == "Compost"
    assert documents["results"][0]["id"] == "handbook-holiday"


def test_the_command_line_searches_the_demo(demo: Demo) -> None:
    requests = next(item for item in _commands(demo.shown) if item.startswith("toolscript"))
    assert "files__read_file" in run({}, *shlex.split(requests)[1:]).stdout


def test_every_health_check_passes(demo: Demo) -> None:
    assert demo.get("/readyz").json()["status"] == "ready"


def test_it_listens_on_loopback_alone(demo: Demo) -> None:
    tables = [Path(f"/proc/{demo.process.pid}/net/{name}") for name in ("tcp", "tcp6")]
    if not tables[0].is_file():
        pytest.skip("this system does not tell who listens where")
    rows = [line.split() for table in tables if table.is_file() for line in table.read_text().splitlines()[1:]]
    listening = "0A"
    index = {row[1].partition(":")[0] for row in rows if row[3] == listening and _port(row[1]) == demo.port}
    assert index == {"0100007F"}


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


def test_dns_rebinding_is_refused(demo: Demo) -> None:
    assert demo.get("/", host="elsewhere.example").status_code == 403


def test_the_first_answer_costs_few_seconds_of_cpu(demo: Demo) -> None:
    if not demo.cpu_seconds:
        pytest.skip("this system does not tell what a process has used")
    assert demo.cpu_seconds < MAX_CPU_SECONDS * GENEROUS


def test_a_model_in_a_folder_is_used(model_folder: str) -> None:
    with demo_running(TOOLSCRIPT_EMBEDDING_MODEL=model_folder) as running:
        assert running.first["tools"][0]["name"] == "create_event"
        assert f"embedded by {model_folder}" in running.shown
        assert running.get("/readyz").json()["parts"]["embedding"]["note"] != "hash"


@pytest.mark.parametrize(
    ("extra", "reason"),
    [(("--host", "0.0.0.0"), "this machine alone"), (("--socket", "demo.sock"), "a port only")],
)
def test_another_host_is_refused(extra: tuple[str, str], reason: str) -> None:
    refused = run({}, "serve", "--demo", *extra, code=2)
    assert refused.stdout == ""
    assert reason in refused.stderr


def test_its_catalog_is_as_large_as_it_says() -> None:
    contents = read_contents()
    assert 30 <= len(contents.items) <= 40
    assert {item.kind.value for item in contents.items} == {"tool", "prompt", "resource"}
    assert len({item.key for item in contents.items}) == len(contents.items)


def _commands(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith(("curl ", "TOKEN=", "toolscript "))]


def _token(demo: Demo) -> str:
    return next(line.removeprefix("TOKEN=") for line in demo.shown.splitlines() if line.startswith("TOKEN="))
