"""Commands use a running gateway unless told otherwise, or report why they do not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, new_machine, until

pytestmark = pytest.mark.requirement("TS-002")


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    machine = new_machine(tmp_path_factory.mktemp("living") / "machine", weights)
    machine.configure({"plain": mcp_server("plain")})
    with machine.gateway() as gateway:
        until(lambda: gateway.server("plain").get("status") == "ready", "the server")
        # A command that starts its own server would fail here.
        machine.configure({"plain": {**mcp_server("plain"), "disabled": True}, "other": {"command": "true"}})
        until(lambda: "plain" not in str(gateway.health()["servers"]), "the change")
        machine.configure({"plain": mcp_server("plain")})
        until(lambda: gateway.server("plain").get("status") == "ready", "the server again")
        yield machine, gateway


def test_a_command_without_a_model_option_uses_the_running_gateway(living: tuple[Machine, Gateway]) -> None:
    machine, _ = living
    done = machine.without("TOOLSCRIPT_SEARCH_MODEL").here().run("search", "add two numbers")
    assert "plain__add" in done.stdout
    assert "keyword search only" not in done.stderr
    assert "not used" not in done.stderr


def test_a_command_with_another_model_works_alone_and_reports_it(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    done = machine.also(TOOLSCRIPT_SEARCH_ALPHA="0.2").here().run("search", "add two numbers")
    assert f"the gateway at {gateway.url} is not used: it has search_alpha 0.7" in done.stderr
    assert "plain__add" in done.stdout


@pytest.mark.parametrize("option", ["--refresh", "--data-dir"])
def test_a_command_that_refreshes_or_has_another_data_folder_works_alone_and_reports_it(
    living: tuple[Machine, Gateway], option: str, tmp_path: Path
) -> None:
    machine, gateway = living
    value = [str(tmp_path)] if option == "--data-dir" else []
    done = machine.here().run("search", "add two numbers", option, *value)
    assert re.search(f"the gateway at {gateway.url} is not used: .*{option}", done.stderr)
    assert "plain__add" in done.stdout


def test_a_project_that_names_no_server_changes_nothing(living: tuple[Machine, Gateway]) -> None:
    machine, _ = living
    file = machine.project / ".toolscript.json"
    try:
        for text in ("{}", '{"mcpServers": {}}', '{"mcpServers": {"evil": {"command": "true"}}}'):
            file.write_text(text, "utf-8")
            done = machine.here().run("search", "add two numbers")
            assert "plain__add" in done.stdout
            assert "is not used" not in done.stderr
    finally:
        file.unlink()


def search(machine: Machine) -> str:
    done = machine.here().run("search", "add two numbers")
    assert "is not used" not in done.stderr
    assert "plain__add" in done.stdout or "its__add" in done.stdout
    return done.stdout


def test_a_project_with_its_own_servers_uses_the_gateway_for_all(living: tuple[Machine, Gateway]) -> None:
    machine, gateway = living
    file = machine.project / ".toolscript.json"
    file.write_text(json.dumps({"mcpServers": {"its": mcp_server("plain")}}), "utf-8")
    try:
        machine.by_person("trust", "--yes")
        # The tool of both is one hit, a little after the second server has answered.
        until(lambda: "(also " in search(machine), "the tool of both servers")
        assert gateway.server("its") == {}
    finally:
        file.unlink()
