"""A terminal that runs a command: tests wait for its output and type input."""

import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.commands import WAIT_SECONDS, command

RESPONSE_SECONDS = 5.0


class Terminal:
    def __init__(self, process: "subprocess.Popen[bytes]", screen: int) -> None:
        self._process = process
        self._screen = screen
        self.shown = ""
        self._read_to = 0

    def expect(self, text: str) -> None:
        """Wait until this text appears after the text of the last call."""
        ends_at = time.monotonic() + WAIT_SECONDS
        while text not in self.shown[self._read_to :]:
            self._read(ends_at, text)
        self._read_to = self.shown.index(text, self._read_to) + len(text)

    def type(self, line: str) -> None:
        os.write(self._screen, f"{line}\n".encode())

    def end_of_input(self) -> None:
        os.write(self._screen, b"\x04")

    def interrupt(self) -> None:
        """Send SIGINT like Ctrl-C; repeat it, since a program that does not wait for input yet may miss one."""
        ends_at = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < ends_at:
            self._process.send_signal(signal.SIGINT)
            if select.select([self._screen], [], [], RESPONSE_SECONDS)[0]:
                return
        raise AssertionError(f"it does not react to SIGINT: {self.shown}")

    def ended(self) -> int:
        """Read all output; return the exit code."""
        ends_at = time.monotonic() + WAIT_SECONDS
        while self._read(ends_at, "the end"):
            pass
        return self._process.wait(timeout=WAIT_SECONDS)

    def _read(self, ends_at: float, awaited: str) -> bool:
        ready, _, _ = select.select([self._screen], [], [], max(0.0, ends_at - time.monotonic()))
        assert ready, f"{awaited!r} was not shown, only this: {self.shown}"
        try:
            block = os.read(self._screen, 65536)
        except OSError:
            block = b""
        self.shown += block.decode("utf-8", "replace")
        assert block or awaited == "the end", f"it ended before {awaited!r}: {self.shown}"
        return bool(block)


def run_watched(
    environment: Mapping[str, str], folder: Path, *arguments: str, standard_input: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run a command of `toolscript` whose messages a person reads in a terminal; what it prints goes to a pipe."""
    ours, its = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):
            while block := os.read(ours, 65536):
                shown.extend(block)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = subprocess.run(
            command(*arguments),
            env=environment,
            cwd=folder,
            input=standard_input,
            stdout=subprocess.PIPE,
            stderr=its,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
            start_new_session=True,
        )
    finally:
        os.close(its)
        reader.join(WAIT_SECONDS)
        os.close(ours)
    done.stderr = shown.decode("utf-8", "replace").replace("\r\n", "\n")
    return done


@contextmanager
def in_a_terminal(environment: Mapping[str, str], folder: Path, *arguments: str) -> Iterator[Terminal]:
    """Run a command of `toolscript`.

    In a session of its own: a terminal that the tests run in would be asked for passwords in place of this one.
    """
    ours, its = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), env=environment, cwd=folder, stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=WAIT_SECONDS)
        os.close(ours)
