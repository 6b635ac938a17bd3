"""The port of a gateway: the one that was chosen, else the last one, else a free one."""

import socket
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway import serve
from toolscript.gateway.settings import FLAG, GatewaySettings

pytestmark = pytest.mark.requirement("TS-002")


def of(folder: Path, port: int, *, chosen: bool = False) -> GatewaySettings:
    (folder / "run").mkdir(exist_ok=True)
    return GatewaySettings(
        data_dir=str(folder), gateway_port=port, sources={"gateway_port": FLAG} if chosen else {}
    )


def port_of(settings: GatewaySettings) -> int:
    with serve._listener_of(settings, or_any=False) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def taken() -> socket.socket:
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    return holder


def test_where_another_program_has_the_port_a_free_one_is_taken_and_stays(
    tmp_path: Path, taken: socket.socket
) -> None:
    with taken:
        usual = taken.getsockname()[1]
        first = port_of(of(tmp_path, usual))
        assert first != usual
        assert port_of(of(tmp_path, usual)) == first
    assert port_of(of(tmp_path, usual)) == first, "clients' files may name it"


def test_a_chosen_port_is_that_or_an_error(tmp_path: Path, taken: socket.socket) -> None:
    with taken, pytest.raises(SetupError, match="cannot be used"):
        port_of(of(tmp_path, taken.getsockname()[1], chosen=True))
    assert not (tmp_path / "run" / "port").exists()


@pytest.mark.parametrize("text", ["", "x", "80", "99999999", "-1"])
def test_a_kept_port_that_is_none_is_ignored(tmp_path: Path, taken: socket.socket, text: str) -> None:
    usual = taken.getsockname()[1]
    taken.close()
    settings = of(tmp_path, usual)
    (tmp_path / "run" / "port").write_text(text)
    assert port_of(settings) == usual
