"""gateway start, status and stop."""

import json
import signal
import subprocess
import sys

import pytest

from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Machine, is_alive, until

pytestmark = pytest.mark.requirement("TS-008")

READ = tool("files", "read_file", "Read the contents of a file from disk")


@pytest.fixture
def files(machine: Machine) -> Machine:
    catalog = write_catalog(machine.folder / "tools.jsonl", [READ])
    machine.configure(catalog_servers(catalog, ["files"]))
    return machine


def test_a_gateway_is_started_once_shown_found_by_commands_and_stopped_with_its_servers(files: Machine) -> None:
    assert files.here().json("gateway", "status", code=1) == {"running": False}
    with files.gateway() as gateway:
        # A server is ready a moment before its tools are indexed.
        until(lambda: gateway.ask("/health").json()["items"] == 1, "the tools of the server")
        status = files.here().json("gateway", "status")
        assert (status["running"], status["url"], status["items"]) == (True, gateway.url, 1)
        assert "hint" not in files.here().json("search", "read a file"), "answered by the gateway, not from memory"
        child = json.loads(gateway.call("files__read_file").json()["content"][0]["text"])["pid"]
        refused = files.run("gateway", "start", "--port", "0", code=2).stderr
        assert f"a gateway is already running at {gateway.url}" in refused
        assert "toolscript gateway stop" in refused
        assert is_alive(child)
        assert files.here().json("gateway", "stop") == {"stopped": gateway.process.pid}
        assert gateway.process.wait(timeout=10) == 0
        until(lambda: not is_alive(child), "the end of the server", seconds=10)
        assert [*(files.data / "run").glob("*.json")] == []
    assert files.here().json("gateway", "status", code=1) == {"running": False}
    assert "no gateway is running" in files.here().run("gateway", "stop", code=2).stderr


def test_ctrl_c_leaves_neither_servers_nor_a_file(files: Machine) -> None:
    with files.gateway() as gateway:
        until(lambda: gateway.server("files").get("status") == "ready", "the server")
        child = json.loads(gateway.call("files__read_file").json()["content"][0]["text"])["pid"]
        gateway.process.send_signal(signal.SIGINT)
        gateway.process.wait(timeout=10)
        until(lambda: not is_alive(child), "the end of the server", seconds=10)
        assert [*(files.data / "run").glob("*.json")] == []
        assert "Traceback" not in gateway.log.read_text("utf-8")


# A command may find the gateway in its file, and stop it, before it has begun to listen for signals.
STOPPED_AT_ONCE = """
import os, signal
from toolscript.gateway.serve import serve
from toolscript.gateway.settings import load_gateway_settings
serve(load_gateway_settings({"gateway_port": 0}), lambda url: os.kill(os.getpid(), signal.SIGTERM))
"""


def test_a_gateway_that_is_stopped_in_the_moment_it_is_ready_ends(files: Machine) -> None:
    command = [sys.executable, "-c", STOPPED_AT_ONCE]
    subprocess.run(command, env=files.whole_environment(), cwd=files.project, timeout=60, check=True)
    assert [*(files.data / "run").glob("*.json")] == []


def test_a_killed_gateway_does_not_count_as_running(files: Machine) -> None:
    with files.gateway() as gateway:
        (written,) = (files.data / "run").glob("*.json")
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait(timeout=10)
        assert written.exists()
        assert files.here().json("gateway", "status", code=1) == {"running": False}
        assert files.here().json("search", "read a file")["results"][0]["toolId"] == "files__read_file"
    with files.gateway() as again:
        assert files.here().json("gateway", "status")["url"] == again.url


def test_a_background_gateway_is_ready_when_the_command_returns(files: Machine) -> None:
    output = files.json("gateway", "start", "--port", "0", "--background")
    try:
        status = files.here().json("gateway", "status")
        assert (status["running"], status["url"]) == (True, output["url"])
        assert output["mcp"] == f"{output['url']}/mcp"
    finally:
        stopped = files.here().json("gateway", "stop")["stopped"]
    until(lambda: not is_alive(stopped), "its end")


def test_a_port_in_use_is_reported(files: Machine) -> None:
    with files.gateway() as gateway:
        port = gateway.url.rpartition(":")[2]
        elsewhere = files.also(TOOLSCRIPT_DATA_DIR=str(files.folder / "elsewhere"))
        refused = elsewhere.run("gateway", "start", "--port", port, code=2).stderr
    assert f"port {port} of this machine cannot be used" in refused
    assert "--port" in refused


def test_an_explicit_gateway_that_does_not_respond_is_reported(files: Machine) -> None:
    output = files.also(TOOLSCRIPT_GATEWAY_URL="http://127.0.0.1:9")
    refused = output.here().run("search", "read a file", code=2).stderr
    assert "the gateway at 127.0.0.1" in refused
    assert "does not answer" in refused


def test_a_gateway_without_servers_answers_that_there_are_none(machine: Machine) -> None:
    with machine.gateway() as gateway:
        answer = until(lambda: gateway.ask("/search?q=x"), "an answer")
        assert answer.status_code == 200
        assert "no server offers anything" in answer.json()["hint"]
