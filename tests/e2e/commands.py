"""Runs the installed command line like a user, in a separate environment."""

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import IO
from unittest.mock import patch

from typer import Typer

from benchmarks.__main__ import app as benchmarks
from tests.support.reserved_ports import reserved_port
from toolscript.__main__ import start
from toolscript.cli.app import build_cli
from toolscript_eval.cli import evaluate_commands

WAIT_SECONDS = 180.0
BENCH = "bench"
EVAL = "eval"


def command(*arguments: str) -> list[str]:
    """Return the command line. `bench` and `eval` run the benchmarks and the judge, separate programs."""
    if arguments[:1] in ((BENCH,), (EVAL,)):
        program = "benchmarks" if arguments[0] == BENCH else "toolscript_eval"
        return [sys.executable, "-m", program, *arguments[1:]]
    return [sys.executable, "-m", "toolscript", *arguments]


# Without a gateway that stays behind or the keyring of the person who runs the tests, and with servers that stay
# ready; tests of these say otherwise.
USUAL = {
    "TOOLSCRIPT_GATEWAY_ON_DEMAND": "false",
    "TOOLSCRIPT_GATEWAY_IDLE_SECONDS": "0",
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
}


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSCRIPT_")}
    return {**own, **USUAL, **extra}


def run(
    extra: Mapping[str, str], *arguments: str, code: int = 0, standard_input: str = ""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*arguments),
        env=environment(extra),
        input=standard_input,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def run_here(
    extra: Mapping[str, str], *arguments: str, code: int = 0, standard_input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run in this process, where all modules are loaded: for tests of many commands."""
    return run_in(environment(extra), Path.cwd(), *arguments, code=code, standard_input=standard_input)


def run_in(
    whole_environment: Mapping[str, str], folder: Path, *arguments: str, code: int = 0, standard_input: str = ""
) -> subprocess.CompletedProcess[str]:
    output, errors, ended = StringIO(), StringIO(), 0
    programs: dict[str, tuple[str, Callable[[], Typer]]] = {
        BENCH: ("benchmarks", lambda: benchmarks),
        EVAL: ("toolscript-eval", evaluate_commands),
    }
    program, commands = programs.get(next(iter(arguments), ""), ("toolscript", None))
    handlers = logging.getLogger().handlers[:]
    with (
        chdir(folder),
        patch.dict(os.environ, whole_environment, clear=True),
        patch.object(sys, "argv", [program, *(arguments[1:] if commands else arguments)]),
        patch.object(sys, "stdin", StringIO(standard_input)),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            start(commands() if commands else build_cli(only=next(iter(arguments), "")))
        except SystemExit as end:
            ended = int(end.code or 0)
        finally:
            logging.getLogger().handlers[:] = handlers
    message = f"{arguments} ended with {ended}: {output.getvalue()}{errors.getvalue()}"
    assert ended == code, message
    return subprocess.CompletedProcess(arguments, ended, output.getvalue(), errors.getvalue())


@contextmanager
def serving(extra: Mapping[str, str]) -> Iterator[str]:
    """Run `toolscript serve` as a process and yield its address."""
    # A file, not a pipe: a server would block on a full pipe.
    with reserved_port() as port, tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command("serve", "--port", str(port)), env=environment(extra), stderr=log)
        try:
            until_listening(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=WAIT_SECONDS)


def until_listening(process: subprocess.Popen[bytes], port: int, log: IO[str]) -> None:
    ends_at = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends_at:
        if process.poll() is not None:
            log.seek(0)
            raise AssertionError(f"serve ended with {process.returncode}: {log.read()}")
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("serve did not listen in time")
