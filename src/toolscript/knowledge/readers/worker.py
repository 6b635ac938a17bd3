"""The process that reads files one after the other, and the frames it is sent. It opens no file itself.

    python -P -m toolscript.knowledge.readers.worker

Whoever started it speaks to it through its standard input, a socket. When that is closed, it ends.
"""

import contextlib
import gc
import json
import logging
import os
import resource
import socket
import sys
import warnings
from typing import BinaryIO

from toolscript.knowledge.readers.blocks import (
    MAX_NAME,
    MEGABYTE,
    FileKind,
    ReadingLimits,
    Skip,
    in_megabytes,
    kind_of,
    limits_from_json,
    skip,
)
from toolscript.knowledge.readers.reading import read_bytes
from toolscript.knowledge.readers.wire import HEAD, READY, framed, reading_to_json, skipped_to_json

MAX_REQUEST = MAX_NAME * 4
# After a file that took so much, what is left of it would be missing for the next one.
RETIRES_ABOVE = 400 * MEGABYTE
CANNOT_BE_READ = "it is damaged, or not what its name says"


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as asked, contextlib.suppress(OSError):
        asked.sendall(framed(READY))
        while _serve(asked):
            gc.collect()


def _serve(asked: socket.socket) -> bool:
    """One file; False when there is nobody any more, or this process has grown too large for another."""
    request, files, _, _ = socket.recv_fds(asked, HEAD.size + MAX_REQUEST, 1)
    if not request:
        return False
    (length,) = HEAD.unpack_from(request)
    while len(request) < HEAD.size + length:
        request += asked.recv(HEAD.size + length - len(request))
    told = json.loads(request[HEAD.size :])
    limits = limits_from_json(told["limits"])
    _confine(limits)
    with open(files[0], "rb", closefd=True) as file:  # noqa: PTH123 - it has no path, it is open already
        answer = answer_for(str(told["name"]), file, limits)
    asked.sendall(framed(answer))
    return _memory() < RETIRES_ABOVE


def _confine(limits: ReadingLimits) -> None:
    """Before anything of a file is looked at. What it has used so far is not counted against this one."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(used.ru_utime + used.ru_stime) + 1 + limits.cpu_seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))
    for kind, maximum in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (maximum, maximum))


def answer_for(name: str, file: BinaryIO, limits: ReadingLimits) -> bytes:
    """A reading, or why there is none: whatever a parser stumbles over, this file is left out, and no other."""
    try:
        answer = reading_to_json(read_bytes(name, _bytes_of(name, file, limits), limits))
        if len(answer) > limits.answer:
            skip(f"its text is larger than {in_megabytes(limits.answer)}", "split it into several files")
        return answer
    except Skip as error:
        return skipped_to_json(error.reason, error.hint)
    except MemoryError:
        # Said below: as long as the error is at hand, so is all that has filled the memory.
        pass
    except RecursionError:
        return skipped_to_json("its parts are nested too deeply")
    except Exception:  # noqa: BLE001 - parsers have errors of their own without end
        return skipped_to_json(CANNOT_BE_READ)
    return skipped_to_json(f"reading it takes more memory than {in_megabytes(limits.memory)}", again=True)


def _bytes_of(name: str, file: BinaryIO, limits: ReadingLimits) -> bytes:
    """A file can grow while it is read."""
    maximum = limits.pdf_bytes if kind_of(name) is FileKind.PDF else limits.other_bytes
    data = file.read(maximum + 1)
    if len(data) > maximum:
        skip(f"it is larger than {in_megabytes(maximum)}", "split it into several files")
    if not data:
        skip("it is empty")
    return data


def _memory() -> int:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


if __name__ == "__main__":
    main()
