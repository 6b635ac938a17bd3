"""Requests that never arrive whole: others are answered meanwhile, and each ends in time."""

import resource
import selectors
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.commands import command, environment, until_listening
from tests.e2e.gateway.machines import Machine
from tests.support.reserved_ports import reserved_port

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.alone, pytest.mark.slow]

BODY = b'{"query": "half a'
HEAD = b"POST /api/v1/tools/search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
STARTS = (
    HEAD + b"content-length: 1000\r\n\r\n" + BODY,
    HEAD + b"transfer-encoding: chunked\r\n\r\n11\r\n" + BODY,
    HEAD,
)
ENDED_SECONDS, ALIVE_SECONDS, LOOKS = 20.0, 0.5, 20
SIZES = [150, pytest.param(1_500, marks=pytest.mark.nightly)]


@contextmanager
def open_files_up_to(count: int) -> Iterator[None]:
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(usual, min(count, most)), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


@contextmanager
def serving_demo(folder: Path) -> Iterator[str]:
    with reserved_port() as port, (folder / "log").open("w+") as log:
        arguments = command("serve", "--demo", "--port", str(port))
        process = subprocess.Popen(arguments, env=environment({}), stdout=log, stderr=log, cwd=folder)
        try:
            until_listening(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def half_sent(url: str, count: int) -> Iterator[dict[socket.socket, float]]:
    """Open so many connections, each with a part of a request; yield when each was made."""
    place = urlsplit(url)
    assert place.hostname is not None
    with ExitStack() as stack:
        made = {}
        for number in range(count):
            connection = stack.enter_context(socket.create_connection((place.hostname, place.port or 80), 30))
            connection.sendall(STARTS[number % len(STARTS)])
            connection.setblocking(False)
            made[connection] = time.monotonic()
        yield made


def seconds_until_ended(made: dict[socket.socket, float]) -> list[float]:
    """Return how long each connection was open. What they are told is read and not looked at."""
    ended = []
    with selectors.DefaultSelector() as selector:
        for waiting in made:
            selector.register(waiting, selectors.EVENT_READ, waiting)
        deadline = time.monotonic() + 2 * ENDED_SECONDS
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(1.0):
                connection: socket.socket = key.data
                try:
                    is_open = bool(connection.recv(65536))
                except ConnectionError:
                    is_open = False
                if not is_open:
                    selector.unregister(connection)
                    ended.append(time.monotonic() - made[connection])
    assert len(ended) == len(made), f"{len(made) - len(ended)} of {len(made)} are open after {2 * ENDED_SECONDS} s"
    return ended


def slowest_look(url: str) -> float:
    """Return the slowest of some looks at whether the process is alive, each on a connection of its own."""
    return max(look(url) for _ in range(LOOKS))


def look(url: str) -> float:
    began = time.perf_counter()
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", "/livez")
    assert connection.getresponse().status == 200
    connection.close()
    return time.perf_counter() - began


def assert_that_others_are_answered_and_each_ends(url: str, count: int) -> None:
    alone = slowest_look(url)
    with open_files_up_to(count + 500), half_sent(url, count) as made:
        # The first look is behind the arrival of so many, which costs what that of whole requests does.
        look(url)
        slowest = slowest_look(url)
        ended = seconds_until_ended(made)
    # That a machine is busy is no fault.
    assert slowest < max(ALIVE_SECONDS, 2 * alone), f"{slowest:.2f} s beside {count}, {alone:.2f} s alone"
    assert max(ended) < ENDED_SECONDS, f"{max(ended):.1f} s"


@pytest.mark.parametrize("count", SIZES)
def test_half_sent_requests_keep_the_gateway_from_nothing(machine: Machine, count: int) -> None:
    machine = machine.also(TOOLSCRIPT_SEARCH_MODEL="none")
    machine.configure({})
    with machine.gateway() as gateway:
        assert_that_others_are_answered_and_each_ends(gateway.url, count)


@pytest.mark.parametrize("count", SIZES)
def test_half_sent_requests_keep_the_service_from_nothing(tmp_path: Path, count: int) -> None:
    with serving_demo(tmp_path) as url:
        assert_that_others_are_answered_and_each_ends(url, count)
