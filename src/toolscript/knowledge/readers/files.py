"""The port `SourceFiles`: lists, opens and hashes files; another process reads them."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from toolscript.core.errors import FileSkipped, NotFound, SetupError
from toolscript.core.own_files import NotRegular, open_regular
from toolscript.knowledge.model.ingest import Reading
from toolscript.knowledge.readers.blocks import (
    MAX_NAME,
    MEGABYTE,
    FileKind,
    ReadingLimits,
    Skip,
    in_megabytes,
    is_known,
    kind_of,
    skip,
)
from toolscript.knowledge.readers.wire import HEAD, READY, framed, is_worth_another_try, reading_from_json

MAX_FILES = 1_000_000
MAX_DEPTH = 64

# Opens folders only, and follows no symbolic link. With O_PATH, a folder needs no read permission.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISLNK, "it is a symbolic link"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)

WORKER = "toolscript.knowledge.readers.worker"
_BUFFER = 1024 * 1024
_SECONDS_TO_START, _SECONDS_TO_END = 60.0, 5.0

# A process is replaced after so many files, which frees what it kept of them.
MAX_FILES_OF_A_PROCESS = 500


@dataclass(frozen=True)
class ListedFile:
    """`path` is absolute, with `/`. With a `problem`, neither it nor its contents can be read."""

    path: str
    problem: str = ""


def list_files(path: str) -> Iterator[ListedFile]:
    """Yield the file itself, or the supported files in a folder. Only a link that is `path` itself is followed."""
    try:
        named = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(f"there is no {path}") from error
    if not named.is_dir():
        yield ListedFile(named.as_posix())
        return
    for count, file in enumerate(_in_folder(str(named))):
        if count >= MAX_FILES:
            yield ListedFile(named.as_posix(), f"there are more than {MAX_FILES:,} files in it")
            return
        yield file


def _in_folder(folder: str) -> Iterator[ListedFile]:
    """Walk depth first, in order of names, with a stack."""
    waiting: list[tuple[str, int, bool]] = [(folder, 0, True)]
    while waiting:
        path, depth, is_folder = waiting.pop()
        if not is_folder:
            yield _listed(path)
            continue
        if depth > MAX_DEPTH:
            yield _listed(path, "its folders are nested too deeply")
            continue
        try:
            with os.scandir(path) as entries:
                inner = sorted(_visible_entries(entries), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            yield _listed(path, f"the folder cannot be read: {error.strerror}")
            continue
        waiting.extend((entry.path, depth + 1, entry.is_dir(follow_symlinks=False)) for entry in inner)


def _visible_entries(entries: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
    for entry in entries:
        if not entry.name.startswith(".") and (entry.is_dir(follow_symlinks=False) or is_known(entry.name)):
            yield entry


def _listed(path: str, problem: str = "") -> ListedFile:
    """Return the file; one whose name is not UTF-8 can be neither stored nor shown."""
    readable = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if readable != path:
        return ListedFile(readable, problem or "its name is not UTF-8")
    return ListedFile(path, problem)


def open_file(path: str) -> int:
    """Open a file and return its descriptor; folder by folder, so that none can become a link meanwhile."""
    parts = PurePosixPath(path)
    if not parts.is_absolute() or ".." in parts.parts:
        skip("its path is not absolute")
    folder = os.open("/", _FOLDER)
    try:
        for name in parts.parts[1:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _opened(parts.name, folder)
    except FileNotFoundError:
        skip("it does not exist")
    except PermissionError:
        skip("it may not be read", "grant this user read permission")
    except NotADirectoryError:
        skip("its path contains a symbolic link", "pass the path that the link leads to")
    except (OSError, ValueError) as error:
        skip(f"it cannot be opened: {getattr(error, 'strerror', None) or error}")
    finally:
        os.close(folder)


def _opened(name: str, folder: int) -> int:
    """Open a regular file of any owner: its content is data, never configuration."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        _skip_kind(mode)
    try:
        return open_regular(name, follow_links=False, dir_fd=folder)
    except NotRegular as error:
        # It was replaced since `stat`.
        _skip_kind(error.mode)


def _skip_kind(mode: int) -> NoReturn:
    skip(next((reason for is_kind, reason in _KINDS if is_kind(mode)), "it is no file"))


def content_hash(path: str, limits: ReadingLimits) -> str:
    maximum = limits.pdf_bytes if kind_of(path) is FileKind.PDF else limits.other_bytes
    digest, size = hashlib.sha256(), 0
    with os.fdopen(open_file(path), "rb") as file:
        while size <= maximum and (some := file.read(MEGABYTE)):
            digest.update(some)
            size += len(some)
    if size > maximum:
        skip(f"it is larger than {in_megabytes(maximum)}", "split it into several files")
    return digest.hexdigest()


class ProcessLost(Exception):
    """The process ended, or sent an invalid response."""


class TooLong(Exception):
    """The system killed the process at its CPU limit."""


class Process:
    """A reader process. `files` counts the files sent to it."""

    def __init__(self, child: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self._child = child
        self._channel = channel
        self.files = 0

    @classmethod
    async def start(cls) -> "Process":
        """Start a process and wait until it is ready: the time limit of a file begins then."""
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
                await process._response(len(READY))
        except (TimeoutError, ProcessLost, TooLong) as error:
            await process.end()
            raise _cannot_start("it does not answer") from error
        except BaseException:
            await process.end()
            raise
        return process

    async def request(self, message: bytes, file: int, maximum: int) -> bytes:
        """Send a message and a file; return the response of at most `maximum` bytes."""
        self.files += 1
        try:
            # So few bytes fit into the buffer of any idle socket.
            socket.send_fds(self._channel, [framed(message)], [file])
            return await self._response(maximum)
        except OSError as error:
            raise ProcessLost("it has ended") from error

    async def end(self) -> None:
        self._channel.close()
        if self._child.returncode is None:
            self._child.kill()
        # A process in an uninterruptible system call ends only after that call.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_END):
                await self._child.wait()

    async def _response(self, maximum: int) -> bytes:
        (length,) = HEAD.unpack(await self._received(HEAD.size))
        if length > maximum:
            raise ProcessLost("its response is too long")
        return await self._received(length)

    async def _received(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < length:
            data = await loop.sock_recv(self._channel, min(_BUFFER, length - len(received)))
            if not data:
                raise TooLong if await self._child.wait() == -signal.SIGXCPU else ProcessLost("it has ended")
            received += data
        return bytes(received)


async def _child(channel: socket.socket) -> asyncio.subprocess.Process:
    """Start the worker without this process's environment, which has passwords. `-P`: import nothing from the
    current folder."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        WORKER,
        stdin=channel.fileno(),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"},
        start_new_session=True,
    )


def _cannot_start(why: str) -> SetupError:
    return SetupError(
        f"the process that reads files cannot be started: {why}",
        hint="install what it needs: pip install 'toolscript[service]'",
    )


class IsolatedFiles:
    """One process reads files one after the other; it is replaced after a crash, a timeout, or many files."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def content_hash(self, path: str) -> str:
        try:
            return await asyncio.to_thread(content_hash, path, self._limits)
        except Skip as error:
            raise FileSkipped(error.reason, hint=error.hint) from error
        except OSError as error:
            raise FileSkipped(f"it cannot be read: {error.strerror}") from error

    async def read(self, path: str) -> Reading:
        try:
            kind_of(path)
            # A network disk may block.
            file = await asyncio.to_thread(open_file, path)
        except Skip as error:
            raise FileSkipped(error.reason, hint=error.hint) from error
        try:
            async with self._turn:
                answer = await self._answer(PurePosixPath(path).name, file)
        finally:
            os.close(file)
        return await asyncio.to_thread(reading_from_json, answer, self._limits)

    async def close(self) -> None:
        process, self._process = self._process, None
        if process:
            await process.end()

    async def _answer(self, name: str, file: int) -> bytes:
        """Return the response. If a used process fails, a fresh one decides: earlier files may be the cause."""
        request = json.dumps({"name": name[-MAX_NAME // 8 :], "limits": self._limits.to_json()}).encode()
        is_used = self._process is not None and self._process.files > 0
        try:
            answer = await self._request(request, file)
            if not (is_used and is_worth_another_try(answer)):
                return answer
        except ProcessLost:
            if not is_used:
                raise FileSkipped("reading it crashed the reader process") from None
        await self.close()
        os.lseek(file, 0, os.SEEK_SET)
        try:
            return await self._request(request, file)
        except ProcessLost:
            raise FileSkipped("reading it crashed the reader process") from None

    async def _request(self, request: bytes, file: int) -> bytes:
        if self._process is None or self._process.files >= MAX_FILES_OF_A_PROCESS:
            await self.close()
            self._process = await Process.start()
        try:
            async with asyncio.timeout(self._limits.seconds):
                answer = await self._process.request(request, file, self._limits.answer)
        except TooLong as error:
            await self.close()
            raise FileSkipped(f"reading it takes longer than {self._limits.cpu_seconds} s") from error
        except TimeoutError as error:
            await self.close()
            raise FileSkipped(f"reading it takes longer than {self._limits.seconds:g} s") from error
        except BaseException:
            await self.close()
            raise
        return answer


@asynccontextmanager
async def open_source_files(limits: ReadingLimits | None = None) -> AsyncIterator[IsolatedFiles]:
    files = IsolatedFiles(limits or ReadingLimits())
    try:
        yield files
    finally:
        await files.close()
