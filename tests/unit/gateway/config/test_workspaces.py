"""A workspace as a client names it: what the gateway believes of it."""

import json
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.gateway.config.read import ConfigPlace
from toolscript.gateway.config.trust import TrustState
from toolscript.gateway.workspace import Workspace, workspace_of

pytestmark = [pytest.mark.requirement("TR-001"), pytest.mark.usefixtures("home")]
SERVER = {"mcpServers": {"mail": {"command": "mail", "env": {"STAGE": "${STAGE:-dev}"}}}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def config_in(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "servers.json"
    file.write_text(json.dumps(SERVER), "utf-8")
    return file


def test_no_client_can_say_that_a_person_named_its_file(tmp_path: Path) -> None:
    file = config_in(tmp_path / "repo")
    place = Workspace.from_json({"files": [str(file)], "named": str(file), "by_person": True}).place
    assert place.trust(file, file.read_text("utf-8")) is TrustState.UNKNOWN
    assert place.read({}).servers == ()


@pytest.mark.parametrize("files", [["servers.json"], ["/repo/../servers.json"], [], ["/a"] * 9])
def test_files_are_named_by_their_whole_paths(files: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        Workspace.from_json({"files": files})


def test_a_named_file_is_the_only_one() -> None:
    with pytest.raises(InvalidRequest):
        Workspace.from_json({"files": ["/a.json", "/b.json"], "named": "/a.json"})


def test_a_client_and_the_gateway_give_a_named_file_the_same_id(tmp_path: Path) -> None:
    file = config_in(tmp_path / "repo")
    workspace = workspace_of(ConfigPlace(str(file)), {"STAGE": "test"})
    assert Workspace.from_json(workspace.to_json()).id == workspace.id


def test_what_a_client_did_not_send_is_not_set_for_its_file(tmp_path: Path) -> None:
    file = config_in(tmp_path / "repo")
    place = ConfigPlace(str(file), variables={})
    (spec,) = place.read({"STAGE": "prod", "PATH": "/bin"}).servers
    assert spec.env["STAGE"] == "dev"
