"""Starting, recognising and ending server processes."""

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .accounts import Account, bare_environment
from .messages import EnginesError, say
from .state import Process

OPEN_FILES = 65536
ENDED = ("Z", "X")
STOP_SECONDS = 30
KILL_SECONDS = 10
REAP_SECONDS = 15


@dataclass(frozen=True)
class Launch:
    """Parameters to start one server."""

    argv: Sequence[str]
    account: Account
    folder: Path
    log: Path
    version: str


def spawn(launch: Launch) -> Process:
    """Start in a new session, so that the server outlives the shell."""
    _allow_many_open_files()
    if launch.log.exists():
        launch.log.replace(launch.log.with_suffix(".previous.log"))
    with launch.log.open("wb") as log:
        child = subprocess.Popen(
            launch.account.command(launch.argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=launch.folder,
            env=bare_environment(launch.folder),
            start_new_session=True,
        )
    return Process(child.pid, _birth(child.pid) or "never seen", launch.version)


def is_alive(process: Process) -> bool:
    return _birth(process.pid) == process.birth


def stop(process: Process, polite: signal.Signals) -> bool:
    """End exactly this process; False when it had to be killed."""
    _send(process, polite)
    if wait_until(lambda: not is_alive(process), STOP_SECONDS):
        return True
    kill(process)
    return False


def kill(process: Process) -> None:
    _send(process, signal.SIGKILL)
    if not wait_until(lambda: not is_alive(process), KILL_SECONDS):
        raise EnginesError(f"process {process.pid} still runs {KILL_SECONDS} s after SIGKILL")
    wait_until_reaped(process)


def wait_until_reaped(process: Process) -> None:
    """Wait until init has reaped the process: PostgreSQL takes a zombie for a live owner of its data."""
    wait_until(lambda: _is_reaped(process.pid), REAP_SECONDS)


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def run_logged(
    argv: Sequence[str],
    log: Path,
    seconds: float,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    text: str = "",
) -> None:
    """Run a tool to its end, its output going to `log`."""
    with log.open("a") as output:
        output.write(f"--- {argv[0]}\n")
        output.flush()
        try:
            subprocess.run(
                argv,
                input=text.encode(),
                stdout=output,
                stderr=output,
                cwd=folder,
                env=env,
                timeout=seconds,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise EnginesError(f"{argv[0]} took longer than {seconds:.0f} s; see {log}") from None
        except (OSError, subprocess.CalledProcessError) as problem:
            say(tail(log))
            raise EnginesError(f"{argv[0]} failed ({_reason(problem)}); see {log}") from None


def tail(log: Path, lines: int = 8) -> str:
    content = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n  ".join([f"the end of {log}:", *content[-lines:]])


def _reason(problem: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(problem, subprocess.CalledProcessError):
        return f"exit {problem.returncode}"
    return problem.strerror or str(problem)


def _send(process: Process, number: signal.Signals) -> None:
    """Signal through a pidfd: the id cannot be reused by another process between check and kill."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if is_alive(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _birth(pid: int) -> str | None:
    """Return boot id and start tick, which with the pid identify a process uniquely; None if it has ended."""
    fields = _stat_fields(pid)
    if not fields or fields[0] in ENDED:
        return None
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{fields[19]}"


def _is_reaped(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    fields = _stat_fields(pid)
    return not fields or fields[0] not in ENDED


def _stat_fields(pid: int) -> list[str]:
    """Return the fields after the program's name, which may contain spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _allow_many_open_files() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
