"""Process groups of the running children. They end with the gateway, however it ends."""

import asyncio
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from toolscript.core.mcp_client.orphan_keeper import GRACE_SECONDS, send

_KEEPER = Path(__file__).with_name("orphan_keeper.py")
_HAS_GROUPS = sys.platform != "win32"

TERMINATE = signal.SIGTERM
KILL: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessGroups:
    """Process groups that end even if the gateway is killed; otherwise its children would run forever.

    Most servers end when their input closes, but not all, and the kernel sends no signal to a whole group. So a
    small process (`orphan_keeper.py`) reads from a pipe and ends the groups when the pipe closes.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._keeper: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        self._groups.add(group)
        self._notify_keeper(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        self._notify_keeper(f"-{group}\n")

    def kill_all(self) -> None:
        if _HAS_GROUPS:
            send(self._groups, KILL)

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await asyncio.to_thread(_dismiss, keeper)

    def _notify_keeper(self, line: str) -> None:
        if not _HAS_GROUPS:
            return
        if self._keeper is None or self._keeper.poll() is not None:
            self._keeper = _start_keeper()
            line = "".join(f"+{group}\n" for group in self._groups)
        with suppress(BrokenPipeError):
            if self._keeper.stdin is not None:
                self._keeper.stdin.write(line.encode())


def signal_group(group: int, number: int) -> bool:
    """Signal a group; return whether it exists. Signal 0 only checks."""
    return _HAS_GROUPS and bool(send({group}, number))


def _start_keeper() -> subprocess.Popen[bytes]:
    # A new session: Ctrl-C in the gateway's terminal must not end the keeper first.
    return subprocess.Popen(  # noqa: S603 - our own file, run by our own interpreter
        [sys.executable, "-I", "-S", str(_KEEPER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )


def _dismiss(keeper: subprocess.Popen[bytes]) -> None:
    try:
        keeper.communicate(timeout=2 * GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.communicate()
