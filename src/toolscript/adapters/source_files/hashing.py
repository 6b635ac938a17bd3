"""The hash of a file's bytes, without reading what they say: whether it changed is known in a moment."""

import hashlib
import os

from toolscript.adapters.source_files.kinds import FileKind, kind_of
from toolscript.adapters.source_files.limits import MEGABYTE, ReadingLimits
from toolscript.adapters.source_files.opening import open_file
from toolscript.adapters.source_files.skipping import in_megabytes, skip


def content_hash(path: str, limits: ReadingLimits) -> str:
    most = limits.pdf_bytes if kind_of(path) is FileKind.PDF else limits.other_bytes
    digest, size = hashlib.sha256(), 0
    with os.fdopen(open_file(path), "rb") as file:
        while size <= most and (some := file.read(MEGABYTE)):
            digest.update(some)
            size += len(some)
    if size > most:
        skip(f"it is larger than {in_megabytes(most)}", "split it into several files")
    return digest.hexdigest()
