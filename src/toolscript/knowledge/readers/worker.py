"""The reader process: reads files one after the other, from descriptors it receives. It opens no file itself.

    python -P -m toolscript.knowledge.readers.worker

Its parent sends requests through its standard input, a socket. It ends when the socket is closed.
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
# Above this peak the process ends after a file: the next one would lack memory.
RETIRES_ABOVE = 400 * MEGABYTE
CANNOT_BE_READ = "it is damaged, or its extension is wrong"


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as channel, contextlib.suppress(OSError):
        channel.sendall(framed(READY))
        while _serve(channel):
            gc.collect()


def _serve(channel: socket.socket) -> bool:
    """Read one file; return False when the parent is gone, or this process has grown too large."""
    request, files, _, _ = socket.recv_fds(channel, HEAD.size + MAX_REQUEST, 1)
    if not request:
        return False
    (length,) = HEAD.unpack_from(request)
    while len(request) < HEAD.size + length:
        request += channel.recv(HEAD.size + length - len(request))
    data = json.loads(request[HEAD.size :])
    limits = limits_from_json(data["limits"])
    _confine(limits)
    with open(files[0], "rb", closefd=True) as file:  # noqa: PTH123 - it has no path, it is open already
        answer = answer_for(str(data["name"]), file, limits)
    channel.sendall(framed(answer))
    return _memory() < RETIRES_ABOVE


def _confine(limits: ReadingLimits) -> None:
    """Set limits before a file is parsed. CPU time of earlier files does not count against this one."""
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
    """Return a reading or the reason why there is none. An error of a parser skips this file only."""
    try:
        answer = reading_to_json(read_bytes(name, _bytes_of(name, file, limits), limits))
        if len(answer) > limits.answer:
            skip(f"its text is larger than {in_megabytes(limits.answer)}", "split it into several files")
        return answer
    except Skip as error:
        return skipped_to_json(error.reason, error.hint)
    except MemoryError:
        # Handled below: while the error is referenced, so is everything that filled the memory.
        pass
    except RecursionError:
        return skipped_to_json("its parts are nested too deeply")
    except Exception:  # noqa: BLE001 - parsers have errors of their own without end
        return skipped_to_json(CANNOT_BE_READ)
    return skipped_to_json(f"reading it takes more memory than {in_megabytes(limits.memory)}", again=True)


def _bytes_of(name: str, file: BinaryIO, limits: ReadingLimits) -> bytes:
    """Read at most `maximum` bytes: a file can grow meanwhile."""
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
