"""Starts the gateway in the background, and waits until it is there."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from threading import Thread
from typing import IO

from toolscript.core.errors import SetupError
from toolscript.core.own_files import PRIVATE, PRIVATE_FOLDER, make_private, private
from toolscript.gateway.record import RUN, RunningGateway, running_in

START_SECONDS = 30.0
LOOK_SECONDS = 0.02
MAX_LOG = 4_096
LOG_NAME = "gateway.log"
USUAL_FOLDER = "~/.toolscript"
# Ends without an error if another process was faster, and takes any port if the usual one is taken.
ON_DEMAND = "--on-demand"
# What the client was told about its own folder is nothing that the gateway of all clients goes by.
_OF_CLIENT = ("TOOLSCRIPT_CONFIG", "TOOLSCRIPT_GATEWAY_URL", "TOOLSCRIPT_GATEWAY_ALONE")
_VARIABLES = {"data_dir": "TOOLSCRIPT_DATA_DIR", "search_model": "TOOLSCRIPT_SEARCH_MODEL"}
_OPTIONS = {"data_dir": "--data-dir", "search_model": "--model"}


def launch(
    data_folder: Path,
    options: Sequence[str],
    environment: Mapping[str, str],
    *,
    replacing: RunningGateway | None = None,
) -> RunningGateway:
    """Start the gateway of this data folder; return it, or another one that was faster, once it listens.

    `options` are words for its command, `environment` has the variables of this process, `replacing` is the one
    that runs, whose place it takes.
    """
    variables = {name: value for name, value in environment.items() if name not in _OF_CLIENT}
    for setting, name in _VARIABLES.items():
        if variables.get(name):
            variables[name] = _from_anywhere(setting, variables[name])
    old = None if replacing is None else replacing.pid
    return start_in_background(
        data_folder, ["gateway", "start", ON_DEMAND, *options], variables, until_ready=False, not_pid=old
    )


def words_of(given: Mapping[str, str]) -> list[str]:
    """Return the options by which a long-lived client says what the gateway should be like."""
    return [
        word
        for name, option in _OPTIONS.items()
        if given.get(name)
        for word in (option, _from_anywhere(name, given[name]))
    ]


def _from_anywhere(setting: str, value: str) -> str:
    """Return a path that leads to the same place from the gateway's own folder; a name of a model stays."""
    path = Path(value).expanduser()
    return str(path.absolute()) if setting == "data_dir" or path.exists() else value


def start_in_background(
    data_folder: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    *,
    until_ready: bool,
    not_pid: int | None = None,
) -> RunningGateway:
    """Run `toolscript` with these arguments as a daemon, and return its record, or that of a faster one.

    With `until_ready` only the own one counts, and it has to answer. That of `not_pid` counts never.
    """
    log = data_folder / LOG_NAME
    try:
        make_private(log.parent)
        if log.parent == Path(USUAL_FOLDER).expanduser():
            # Made by an earlier version, which others could read.
            log.parent.chmod(PRIVATE_FOLDER)
        with open(log, "ab", opener=private) as output:
            log.chmod(PRIVATE)
            child = _spawned(arguments, output, variables, None if until_ready else _home())
    except OSError as error:
        raise SetupError(
            f"{log} cannot be written: {error.strerror}", hint="choose another folder with --data-dir"
        ) from error
    # It is waited for as long as this process runs, or it would stay as a zombie when it ends.
    Thread(target=child.wait, daemon=True).start()
    running = _wait(data_folder, child, until_ready=until_ready, not_pid=not_pid)
    if running is not None:
        return running
    reason, hint = last_error(log)
    raise SetupError(
        f"the gateway did not start{reason and f': {reason}'}", hint="; ".join(filter(None, (hint, f"see {log}")))
    )


def _spawned(
    arguments: Sequence[str], output: IO[bytes], variables: Mapping[str, str], folder: Path | None
) -> "Popen[bytes]":
    return Popen(  # noqa: S603
        # Not the folder of the command: its modules are none of ours, and it may be removed.
        [sys.executable, "-P", "-m", "toolscript", *arguments],
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=output,
        env=dict(variables),
        cwd=folder,
        start_new_session=sys.platform != "win32",
        creationflags=_creation_flags(),
    )


def _wait(
    data_folder: Path, child: "Popen[bytes]", *, until_ready: bool, not_pid: int | None
) -> RunningGateway | None:
    folder, deadline = data_folder / RUN, time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        # Looked at before the record: a child that has ended writes none any more.
        code = child.poll()
        running = running_in(folder)
        if running is not None and running.pid == not_pid:
            running = None
        if running is not None and (not until_ready or (running.pid == child.pid and running.ready)):
            return running
        if code is not None and (code or until_ready):
            return None
        time.sleep(LOOK_SECONDS)
    return None


def _creation_flags() -> int:
    """Return what takes the place of a new session on Windows: no console of ours that ends the gateway."""
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
    return flags


def _home() -> Path | None:
    with suppress(RuntimeError, OSError):
        return home if (home := Path.home()).is_dir() else None
    return None


def last_error(log: Path) -> tuple[str, str]:
    """Return the last error of the log and its hint, else the last line."""
    with suppress(OSError, UnicodeDecodeError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MAX_LOG))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [number for number, line in enumerate(lines) if line.startswith("error: ")]
        if not errors:
            return (lines[-1] if lines else ""), ""
        hints = [line.removeprefix("hint: ") for line in lines[errors[-1] :] if line.startswith("hint: ")]
        return lines[errors[-1]].removeprefix("error: "), hints[0] if hints else ""
    return "", ""
