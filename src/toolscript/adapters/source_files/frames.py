"""Messages between the two processes: how long it is, in 8 bytes, and then so many bytes."""

import struct

HEAD = struct.Struct(">Q")
# The first that is said: now it can be asked.
READY = b"ready"


def framed(message: bytes) -> bytes:
    return HEAD.pack(len(message)) + message
