"""`serve` in several processes: one address, ended together."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e.commands import command, environment, run, run_here
from tests.support.reserved_ports import reserved_port

SOON = 60.0


@contextmanager
def two_processes(installation: Installation) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    here = environment({**installation.environment, "TOOLSCRIPT_PROCESSES": "2"})
    with reserved_port() as port:
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


def test_two_processes_serve_one_address_and_end_on_a_signal(filled: Installation) -> None:
    with two_processes(filled) as (server, url):
        assert len(children := children_of(server)) == 2
        for _ in range(6):
            body = {"query": "read a file", "tool_threshold": 0.0}
            answer = httpx2.post(f"{url}/api/v1/search", json=body, trust_env=False, verify=False)
            assert [tool["name"] for tool in answer.json()["tools"]] == ["read_file"]
        server.terminate()
        assert server.wait(SOON) == 0
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []


@pytest.mark.requirement("OP-006")
def test_a_process_that_dies_is_replaced_while_the_others_keep_serving(filled: Installation) -> None:
    with two_processes(filled) as (server, url):
        before = set(children_of(server))
        first, second = sorted(before)
        os.kill(first, signal.SIGKILL)
        ends_at = time.monotonic() + SOON
        while len(now := set(children_of(server))) < 2 or first in now:
            assert httpx2.get(f"{url}/livez", trust_env=False, verify=False).status_code == 200
            assert time.monotonic() < ends_at, "nobody took its place"
        assert second in now
        server.terminate()
        assert server.wait(SOON) == 0


@pytest.mark.nightly
def test_when_they_cannot_start_the_command_fails_with_their_error(installation: Installation) -> None:
    no_model = {"TOOLSCRIPT_PROCESSES": "2", "TOOLSCRIPT_EMBEDDING_MODEL": "/no/such/model"}
    with reserved_port() as port:
        done = run({**installation.environment, **no_model}, "serve", "--port", str(port), code=2)
    assert "/no/such/model" in done.stderr
    assert "a process of the server could not start" in done.stderr


@pytest.mark.nightly
@pytest.mark.requirement("OP-006")
def test_during_shutdown_no_connection_is_accepted_and_then_reset(filled: Installation) -> None:
    with two_processes(filled) as (server, url):
        port = int(url.rpartition(":")[2])
        server.terminate()
        resets = 0
        while server.poll() is None:
            resets += _is_reset(port)
        assert server.returncode == 0
    # One connection to each process may have been in flight when the socket closed.
    assert resets <= 2


def _is_reset(port: int) -> bool:
    """Return whether a connection is accepted, but neither answered nor closed properly."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=SOON) as asking:
            asking.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return not asking.recv(1024)
    except ConnectionRefusedError:
        return False
    except OSError:
        return True


def test_a_port_that_is_taken_is_refused_before_anything_is_opened(installation: Installation) -> None:
    two = {**installation.environment, "TOOLSCRIPT_PROCESSES": "2"}
    with reserved_port() as port:
        listening = subprocess.Popen(["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"])
        try:
            _until_ready(listening, f"http://127.0.0.1:{port}")
            done = run(two, "serve", "--port", str(port), code=2)
        finally:
            listening.kill()
            listening.wait()
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
