"""Commands, clients and programs join one gateway, which the first of them starts."""

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.gateway.daemons import Home, a_home
from tests.e2e.gateway.machines import Machine, until
from tests.e2e.gateway.surfaces import mcp_over_stdio

pytestmark = [pytest.mark.requirement("GW-001"), pytest.mark.slow]


@pytest.fixture
def home(tmp_path: Path, weights: Path) -> Iterator[Home]:
    with a_home(tmp_path / "machine", weights) as home:
        yield home


def in_folder(machine: Machine, name: str) -> Machine:
    """Return the machine with commands in another folder of the same user."""
    other = machine.folder.parent / name
    (other / "project").mkdir(parents=True)
    return replace(machine, folder=other, environment={**machine.environment, "HOME": str(machine.home)})


def project_of(machine: Machine, servers: dict[str, object]) -> Path:
    file = machine.project / ".toolscript.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return file


def test_the_first_command_starts_the_gateway_and_the_next_ones_join_it(home: Home) -> None:
    assert home.running() is None
    first = home.machine.run("search", "note that something was done")
    assert "own__note" in first.stdout
    assert "started the gateway in the background" in first.stderr
    pid = home.daemon().pid
    second = home.machine.run("search", "note that something was done")
    assert "own__note" in second.stdout
    assert "started" not in second.stderr
    home.machine.run("list-servers")
    home.machine.run("list-tools")
    home.machine.run("call", "own__note", '{"id": "1"}')
    assert home.daemon().pid == pid
    assert home.daemons() == [pid]
    assert home.diary.calls() == {"1": 1}


def test_a_command_of_any_folder_and_without_a_model_joins_it(home: Home) -> None:
    home.machine.run("call", "own__note", '{"id": "1"}')
    other = in_folder(home.machine, "elsewhere").without("TOOLSCRIPT_SEARCH_MODEL")
    done = other.run("call", "own__note", '{"id": "2"}')
    assert "not used" not in done.stderr
    pids = {entry["pid"] for entry in home.diary.entries() if entry["event"] == "call"}
    assert len(pids) == 1
    assert len(home.daemons()) == 1


def test_alone_neither_joins_nor_starts_it(home: Home) -> None:
    home.machine.run("call", "--alone", "own__note", '{"id": "1"}')
    assert home.daemons() == []
    home.machine.also(TOOLSCRIPT_GATEWAY_ALONE="true").run("search", "note")
    assert home.daemons() == []
    home.machine.run("search", "note")
    before = home.diary.count("start")
    home.machine.run("call", "--alone", "own__note", '{"id": "2"}')
    assert home.diary.count("start") == before + 1


def test_without_a_folder_that_can_be_written_a_command_works_alone(home: Home, tmp_path: Path) -> None:
    taken = tmp_path / "a file"
    taken.write_text("in the place of the data folder")
    done = home.machine.also(TOOLSCRIPT_DATA_DIR=str(taken)).run("search", "note that something was done")
    assert "own__note" in done.stdout
    assert home.daemons() == []


def test_a_table_that_cannot_be_read_is_named_and_no_gateway_is_taken_to_run(home: Home) -> None:
    home.machine.data.mkdir(exist_ok=True)
    (home.machine.data / "rewriting.toml").write_text("[phrases", "utf-8")
    done = home.machine.run("search", "note that something was done", code=2)
    assert "rewriting.toml: the table of rewritings cannot be read" in done.stderr
    assert "does not answer" not in done.stderr
    assert home.running() is None


def test_a_model_that_a_command_names_starts_no_gateway(home: Home) -> None:
    done = home.machine.without("TOOLSCRIPT_SEARCH_MODEL").run("search", "note something", "--model", "none")
    assert "own__note" in done.stdout
    assert home.daemons() == []


def test_a_port_that_another_program_has_is_no_reason_to_work_alone(home: Home, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        home.machine.also(TOOLSCRIPT_GATEWAY_PORT=str(port)).run("search", "note that something was done")
        assert home.daemon().url != f"http://127.0.0.1:{port}"


async def test_clients_of_mcp_share_the_gateway_and_its_servers(home: Home) -> None:
    async with mcp_over_stdio(home.machine) as first, mcp_over_stdio(in_folder(home.machine, "b")) as second:
        one = await first.call("own__note", {"id": "1"})
        two = await second.call("own__note", {"id": "2"})
    assert json.loads(one.text)["pid"] == json.loads(two.text)["pid"]
    # Both may have started one: the slower one ends by itself.
    until(lambda: len(home.daemons()) == 1, "the end of the other gateway")


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.nightly)])
def test_of_gateways_started_at_the_same_instant_one_lives(home: Home, times: int) -> None:
    for _ in range(times):
        _race(home)


def _race(home: Home) -> None:
    starting = [home.popen("gateway", "start", "--on-demand") for _ in range(2)]
    until(lambda: sum(process.poll() is None for process in starting) < 2, "the end of one of them")
    running = home.ready()
    assert [process.pid for process in starting if process.poll() is None] == [running.pid]
    assert [process.returncode for process in starting if process.poll() is not None] == [0]
    home.machine.here().run("gateway", "stop")
    for process in starting:
        process.wait(30)


def test_commands_at_the_same_instant_start_one_gateway(home: Home) -> None:
    commands = [home.popen("call", "own__note", json.dumps({"id": str(number)})) for number in range(6)]
    assert [process.wait(60) for process in commands] == [0] * 6
    assert home.diary.calls() == {str(number): 1 for number in range(6)}
    assert len(home.diary.living()) == 1
    assert len(home.daemons()) == 1


def test_a_projects_servers_belong_to_its_clients_alone(home: Home) -> None:
    home.machine.run("search", "note")
    project_of(home.machine, {"secret": home.server("reveal")})
    home.machine.by_person("trust", "--yes")
    assert {server["name"] for server in home.machine.json("list-servers")["servers"]} == {"own", "secret"}
    called = home.machine.json("call", "secret__reveal", '{"id": "inside"}')
    assert not called["isError"]
    other = in_folder(home.machine, "elsewhere")
    assert {server["name"] for server in other.json("list-servers")["servers"]} == {"own"}
    assert "secret" not in other.run("search", "reveal", "--threshold", "0").stdout
    refused = other.run("call", "secret__reveal", '{"id": "outside"}', code=2)
    assert "there is no server 'secret'" in refused.stderr
    assert home.diary.calls() == {"inside": 1}
    assert len(home.daemons()) == 1


def test_the_persons_own_servers_run_once_for_all_projects(home: Home) -> None:
    project_of(home.machine, {"secret": home.server("reveal")})
    home.machine.by_person("trust", "--yes")
    home.machine.run("call", "own__note", '{"id": "1"}')
    in_folder(home.machine, "elsewhere").run("call", "own__note", '{"id": "2"}')
    pids = {entry["pid"] for entry in home.diary.entries() if entry["event"] == "call"}
    assert len(pids) == 1


def test_the_gateway_starts_nothing_of_a_file_that_is_not_trusted(home: Home) -> None:
    """Also if a client says that it belongs to its workspace."""
    file = project_of(home.machine, {"secret": home.server("reveal")})
    done = home.machine.run("search", "reveal something", "--threshold", "0")
    assert f"toolscript trust {file}" in done.stderr
    running = home.daemon()
    body = json.dumps({"files": [str(home.machine.config), str(file)], "by_person": True})
    answer = _post(running.url, running.token, "/workspaces", body)
    servers = json.loads(_get(running.url + answer["path"], running.token, "/servers"))["servers"]
    [secret] = [server for server in servers if server["name"] == "secret"]
    assert "not trusted" in secret["error"]
    assert home.diary.calls() == {}
    home.machine.by_person("trust", "--yes")
    until(lambda: "reveal" in home.machine.here().run("list-tools").stdout, "the servers of the trusted file")


def test_variables_of_a_projects_file_have_the_values_of_its_client(home: Home) -> None:
    home.machine.run("search", "note")
    project_of(home.machine, {"secret": {**home.server("reveal"), "env": {"KEY": "${PROJECT_KEY}"}}})
    home.machine.by_person("trust", "--yes")
    for value in ("one", "two"):
        called = home.machine.also(PROJECT_KEY=value).json("call", "secret__reveal")
        assert json.loads(called["content"][0]["text"])["env"]["KEY"] == value
    refused = home.machine.run("call", "secret__reveal", code=2)
    assert "needs the variable PROJECT_KEY" in refused.stderr


def test_an_explicit_config_is_a_workspace_of_its_own(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"mcpServers": {"mine": home.server("mine")}}), "utf-8")
    home.machine.run("search", "note")
    servers = home.machine.json("list-servers", "--config", str(file))["servers"]
    assert [server["name"] for server in servers] == ["mine"]
    home.machine.run("call", "mine__mine", '{"id": "1"}', "--config", str(file))
    assert len(home.daemons()) == 1


def test_env_prints_the_address_of_the_folders_servers(home: Home) -> None:
    home.machine.run("search", "note")
    project_of(home.machine, {"secret": home.server("reveal")})
    home.machine.by_person("trust", "--yes")
    env = home.machine.json("gateway", "env")
    assert "/w/" in env["url"]
    done = home.machine.also(TOOLSCRIPT_GATEWAY_URL=env["url"]).run("call", "secret__reveal", '{"id": "1"}')
    assert done.returncode == 0


def _post(url: str, token: str, path: str, body: str) -> dict[str, str]:
    import httpx

    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(url + path, content=body, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _get(url: str, token: str, path: str) -> str:
    import httpx

    answer = httpx.get(url + path, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_folder_and_the_log_of_a_gateway_are_for_its_user_alone(home: Home) -> None:
    data = home.machine.data
    data.mkdir(mode=0o755)
    (data / "gateway.log").touch(0o644)
    home.machine.run("list-servers")
    home.ready()
    found = {path.relative_to(data): path for path in (data, *data.rglob("*"))}
    assert {Path(), Path("gateway.log"), Path("run")} <= found.keys()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "gateway.log").stat().st_mode) == 0o600
