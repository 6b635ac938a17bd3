"""`toolscript serve` as a process that a test signals, and raw connections to it."""

import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import httpx2

from benchmarks.other_constants import command
from tests.e2e.commands import WAIT_SECONDS, environment, until_listening
from tests.support.reserved_ports import reserved_port


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[bytes]"
    port: int

    def get(self, path: str, timeout: float = WAIT_SECONDS) -> httpx2.Response:
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx2.get(url, timeout=timeout, trust_env=False, verify=False)

    def send(self, data: bytes) -> socket.socket:
        """Return a connection on which these bytes were sent."""
        sender = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS)
        sender.sendall(data)
        return sender

    def ended(self) -> int:
        return self.process.wait(WAIT_SECONDS)


@contextmanager
def served(
    extra: Mapping[str, str], max_files: int | None = None, constants: Mapping[str, float] = MappingProxyType({})
) -> Iterator[Served]:
    """`max_files`: limit of open files. `constants`: overridden values by full name."""
    with reserved_port() as port, tempfile.TemporaryFile("w+") as log:
        arguments = command(constants, "serve", "--port", str(port))
        if max_files is not None:
            arguments = ["sh", "-c", f'ulimit -n {max_files}; exec "$@"', "sh", *arguments]
        process = subprocess.Popen(arguments, env=environment(extra), stderr=log)
        try:
            until_listening(process, port, log)
            yield Served(process, port)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def received(sender: socket.socket) -> bytes:
    """Return all data until the other side closes."""
    output = b""
    try:
        while piece := sender.recv(65536):
            output += piece
    except ConnectionResetError:
        pass
    return output
