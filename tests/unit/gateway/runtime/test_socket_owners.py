"""Owners of connections from the system's table: real sockets, and a real second user."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from toolscript.gateway.socket_owners import comes_from_this_user, owner_of, system_exposes_owners

pytestmark = [
    pytest.mark.requirement("TS-008"),
    pytest.mark.skipif(not system_exposes_owners(), reason="only Linux tells"),
]
NOBODY = 65534
CLIENT = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(sock.getsockname()[1], flush=True)
if sys.argv[2] == "close":
    sock.close()
sys.stdin.readline()
"""
needs_root = pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_a_connection_of_this_user_is_recognised_by_both_ends(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        assert owner_of(client.getsockname(), client.getpeername()) == os.getuid()
        assert comes_from_this_user(client.getsockname(), client.getpeername())
        elsewhere = ("127.0.0.1", 1)
        assert owner_of(client.getsockname(), elsewhere) is None
        assert owner_of(elsewhere, client.getpeername()) is None


def test_an_ipv6_connection_to_the_same_address_is_recognised(listener: socket.socket) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as client:
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        accepted, peer = listener.accept()
        with accepted:
            assert owner_of(peer, accepted.getsockname()) == os.getuid()


@needs_root
@pytest.mark.parametrize("then", ["stay", "close"])
def test_a_connection_of_another_user_has_their_id_and_a_closed_one_none(
    listener: socket.socket, then: str
) -> None:
    """A socket without a process is listed as root's: a gateway of root must not accept it."""
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    program = [*command, sys.executable, "-c", CLIENT, str(listener.getsockname()[1]), then]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other_user:
        accepted, peer = listener.accept()
        assert other_user.stdout is not None
        assert other_user.stdout.readline().strip() == str(peer[1])
        with accepted:
            if then == "close":
                assert accepted.recv(1) == b""
                time.sleep(0.05)
            assert owner_of(peer, accepted.getsockname()) == (NOBODY if then == "stay" else None)
            assert not comes_from_this_user(peer, accepted.getsockname())
        other_user.kill()
