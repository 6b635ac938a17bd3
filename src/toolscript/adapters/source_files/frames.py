"""Messages between the two processes: how long it is, in 8 bytes, and then so many bytes."""

import struct

HEAD = struct.Struct(">Q")


def framed(message: bytes) -> bytes:
    return HEAD.pack(len(message)) + message
