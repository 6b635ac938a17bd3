"""The packed client, and a real service and gateway for it."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.commands import command, environment, until_listening
from tests.e2e.gateway.conftest import weights
from tests.e2e.gateway.machines import Gateway, mcp_server, new_machine, until
from tests.e2e.typescript_client.package import packed, project_with
from tests.support.npm_servers_installed import entry_point
from tests.support.reserved_ports import reserved_port

__all__ = ["weights"]

NOTE = "Buy milk."
TOKEN = re.compile(r"^TOKEN=(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Demo:
    url: str
    token: str


@pytest.fixture(scope="session")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("client"))


@pytest.fixture
def project(tarball: Path, tmp_path: Path) -> Path:
    return project_with(tarball, tmp_path / "project")


@contextmanager
def running_demo() -> Iterator[Demo]:
    """Run `serve --demo`, which prints the token of its tenant."""
    with reserved_port() as port, tempfile.TemporaryFile("w+") as log, tempfile.NamedTemporaryFile("r") as output:
        process = subprocess.Popen(
            command("serve", "--demo", "--port", str(port)),
            env={**environment({}), "PYTHONUNBUFFERED": "1"},
            stdout=os.open(output.name, os.O_WRONLY),
            stderr=log,
        )
        try:
            until_listening(process, port, log)
            token = until(lambda: TOKEN.search(Path(output.name).read_text("utf-8")), "the token of the demo")
            yield Demo(f"http://127.0.0.1:{port}", token[1])
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    with running_demo() as demo:
        yield demo


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[Gateway]:
    """Run a gateway with a server of files, as the page has it, and one that computes."""
    machine = new_machine(tmp_path_factory.mktemp("gateway") / "machine", weights)
    (machine.project / "notes.txt").write_text(NOTE, "utf-8")
    files = {"command": "node", "args": [entry_point("server-filesystem"), str(machine.project)]}
    machine.configure({"filesystem": {**files, "cwd": str(machine.project)}, "plain": mcp_server("plain")})
    with machine.gateway() as gateway:
        until(lambda: {"plain", "filesystem"} == _ready(gateway), "both servers")
        yield gateway


def _ready(gateway: Gateway) -> set[str]:
    servers = json.loads(gateway.ask("/api/v1/servers").text)["results"]
    return {server["name"] for server in servers if server["state"] == "ready"}
