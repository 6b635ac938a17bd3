"""`serve` in several processes: one address, ended together."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Installation
from tests.kept_ports import kept_port
from tests.whole.commands import command, environment, run, run_here

SOON = 60.0


@contextmanager
def two_processes(installation: Installation) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    here = environment({**installation.environment, "TOOLSCRIPT_PROCESSES": "2"})
    with kept_port() as port:
        server = subprocess.Popen(command("serve", "--port", str(port)), env=here, stderr=subprocess.DEVNULL)
        try:
            _until_ready(server, f"http://127.0.0.1:{port}")
            yield server, f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(SOON)


def _until_ready(server: "subprocess.Popen[bytes]", url: str) -> None:
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        assert server.poll() is None, "it ended"
        try:
            httpx2.get(f"{url}/livez", trust_env=False, verify=False)
        except httpx2.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("it did not listen in time")


def children_of(server: "subprocess.Popen[bytes]") -> list[int]:
    listed = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return [int(child) for child in listed.split()]


@pytest.fixture
def filled(installation: Installation, tmp_path: Path) -> Installation:
    file = tmp_path / "items.jsonl"
    file.write_text('{"server": "disk", "name": "read_file", "description": "Read a file"}\n')
    run_here(installation.environment, "sync", str(file))
    run_here(installation.environment, "worker", "--drain")
    return installation


def test_two_processes_answer_at_one_address_and_end_when_told(filled: Installation) -> None:
    with two_processes(filled) as (server, url):
        assert len(children := children_of(server)) == 2
        for _ in range(6):
            body = {"query": "read a file", "tool_threshold": 0.0}
            answer = httpx2.post(f"{url}/api/v1/search", json=body, trust_env=False, verify=False)
            assert [tool["name"] for tool in answer.json()["tools"]] == ["read_file"]
        server.terminate()
        assert server.wait(SOON) == 0
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []


def test_when_one_process_dies_the_others_end_too_and_the_server_says_so(filled: Installation) -> None:
    with two_processes(filled) as (server, _):
        first, second = children_of(server)
        os.kill(first, signal.SIGKILL)
        assert server.wait(SOON) == 2
    assert not Path(f"/proc/{second}").exists()


def test_a_port_that_is_taken_is_refused_before_anything_is_opened(installation: Installation) -> None:
    two = {**installation.environment, "TOOLSCRIPT_PROCESSES": "2"}
    with kept_port() as port:
        listening = subprocess.Popen(["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"])
        try:
            _until_ready(listening, f"http://127.0.0.1:{port}")
            done = run(two, "serve", "--port", str(port), code=2)
        finally:
            listening.kill()
            listening.wait()
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
