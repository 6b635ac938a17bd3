"""The other process, as its parent sees it: a socket, and a life that can be ended."""

import asyncio
import contextlib
import os
import signal
import socket
import sys

from toolscript.adapters.source_files.frames import HEAD, READY, framed
from toolscript.errors import SetupError

WORKER = "toolscript.adapters.source_files.worker"
_PIECE = 1024 * 1024
_SECONDS_TO_START, _SECONDS_TO_END = 60.0, 5.0


class ProcessLost(Exception):
    """It ended, or what it says makes no sense."""


class TooLong(Exception):
    """It was ended by the system for having computed as long as it may."""


class Process:
    """`files` counts those it was handed."""

    def __init__(self, child: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self._child = child
        self._channel = channel
        self.files = 0

    @classmethod
    async def start(cls) -> "Process":
        """One that can be asked: how long a file may take is counted from there."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = cls(await _child(theirs), ours)
        except OSError as error:
            ours.close()
            raise _cannot_start(error.strerror or str(error)) from error
        finally:
            theirs.close()
        try:
            async with asyncio.timeout(_SECONDS_TO_START):
                await process._answered(len(READY))
        except (TimeoutError, ProcessLost, TooLong) as error:
            await process.end()
            raise _cannot_start("it does not answer") from error
        except BaseException:
            await process.end()
            raise
        return process

    async def ask(self, request: bytes, file: int, most: int) -> bytes:
        """The answer, of at most so many bytes."""
        self.files += 1
        try:
            # So little fits into any socket that nobody is writing to.
            socket.send_fds(self._channel, [framed(request)], [file])
            return await self._answered(most)
        except OSError as error:
            raise ProcessLost("it has ended") from error

    async def end(self) -> None:
        self._channel.close()
        if self._child.returncode is None:
            self._child.kill()
        # One that hangs in the system itself does not end before that lets it go.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_END):
                await self._child.wait()

    async def _answered(self, most: int) -> bytes:
        (length,) = HEAD.unpack(await self._received(HEAD.size))
        if length > most:
            raise ProcessLost("its answer is too long")
        return await self._received(length)

    async def _received(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < length:
            piece = await loop.sock_recv(self._channel, min(_PIECE, length - len(received)))
            if not piece:
                raise TooLong if await self._child.wait() == -signal.SIGXCPU else ProcessLost("it has ended")
            received += piece
        return bytes(received)


async def _child(channel: socket.socket) -> asyncio.subprocess.Process:
    """With nothing of this process's environment: there are passwords in it. `-P`: nothing is imported from the
    folder somebody happens to be in."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        WORKER,
        stdin=channel.fileno(),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(one for one in sys.path if one), "PYTHONUTF8": "1"},
        start_new_session=True,
    )


def _cannot_start(why: str) -> SetupError:
    return SetupError(
        f"the process that reads files cannot be started: {why}",
        hint="install what it needs: pip install 'toolscript[service]'",
    )
