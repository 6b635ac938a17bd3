"""The port `SourceFiles`: every file is read in another process, which can be lost without harm."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath

from toolscript.adapters.source_files.answers import is_worth_another_try, reading_from_json
from toolscript.adapters.source_files.hashing import content_hash
from toolscript.adapters.source_files.kinds import kind_of
from toolscript.adapters.source_files.limits import MOST_NAME, ReadingLimits
from toolscript.adapters.source_files.opening import open_file
from toolscript.adapters.source_files.process import Process, ProcessLost, TooLong
from toolscript.adapters.source_files.skipping import Skip
from toolscript.errors import FileSkipped
from toolscript.model.ingest import Reading

# What a process may have kept of its files is gone after so many.
MOST_FILES_OF_A_PROCESS = 500


class IsolatedFiles:
    """One process reads them one after the other; it is replaced when it is lost, late, or has read many."""

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
            # A disk elsewhere may let one wait.
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
        """A process that others have used may fail for what is left of them: then a fresh one decides."""
        request = json.dumps({"name": name[-MOST_NAME // 8 :], "limits": self._limits.to_json()}).encode()
        is_used = self._process is not None and self._process.files > 0
        try:
            answer = await self._asked(request, file)
            if not (is_used and is_worth_another_try(answer)):
                return answer
        except ProcessLost:
            if not is_used:
                raise FileSkipped("reading it has brought down the process that did") from None
        await self.close()
        os.lseek(file, 0, os.SEEK_SET)
        try:
            return await self._asked(request, file)
        except ProcessLost:
            raise FileSkipped("reading it has brought down the process that did") from None

    async def _asked(self, request: bytes, file: int) -> bytes:
        if self._process is None or self._process.files >= MOST_FILES_OF_A_PROCESS:
            await self.close()
            self._process = await Process.start()
        try:
            async with asyncio.timeout(self._limits.seconds):
                answer = await self._process.ask(request, file, self._limits.answer)
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
