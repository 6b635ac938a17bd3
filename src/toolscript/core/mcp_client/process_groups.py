"""The process groups of the children that run. Whatever becomes of the gateway, they end."""

import asyncio
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from toolscript.core.mcp_client.orphan_keeper import GRACE_SECONDS, send

_KEEPER = Path(__file__).with_name("orphan_keeper.py")
_HAS_GROUPS = sys.platform != "win32"

ASKING = signal.SIGTERM
KILLING: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessGroups:
    """A child that outlives a killed gateway would run for ever, and so would what it started itself.

    Most servers end with their input, but not all, and no signal of the kernel reaches a whole group. So a
    small process holds the other end of a pipe and ends the groups when the pipe closes.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._keeper: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def kill_all(self) -> None:
        if _HAS_GROUPS:
            send(self._groups, KILLING)

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await asyncio.to_thread(_dismiss, keeper)

    def _tell(self, line: str) -> None:
        if not _HAS_GROUPS:
            return
        if self._keeper is None or self._keeper.poll() is not None:
            self._keeper = _start_keeper()
            line = "".join(f"+{group}\n" for group in self._groups)
        with suppress(BrokenPipeError):
            if self._keeper.stdin is not None:
                self._keeper.stdin.write(line.encode())


def signal_group(group: int, number: int) -> bool:
    """Whether anyone of the group was there; 0 only asks."""
    return _HAS_GROUPS and bool(send({group}, number))


def _start_keeper() -> subprocess.Popen[bytes]:
    # A session of its own: a Ctrl-C meant for the gateway must not end the keeper first.
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
