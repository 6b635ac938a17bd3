"""A minimal client of MongoDB's wire protocol: one command, and its response as bytes."""

import socket
import struct
from collections.abc import Mapping, Sequence

OP_MSG = 2013
HEADER_SIZE = 16
ANSWER_LIMIT = 1 << 20
ANSWER_SECONDS = 5

Value = int | str | Mapping[str, "Value"] | Sequence["Value"]


def run_command(port: int, command: Mapping[str, Value], database: str = "admin") -> bytes:
    """Run a command; see the wire protocol in MongoDB's manual."""
    body = struct.pack("<IB", 0, 0) + _document({**command, "$db": database})
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as connection:
        connection.sendall(struct.pack("<iiii", HEADER_SIZE + len(body), 1, 0, OP_MSG) + body)
        with connection.makefile("rb") as answer:
            header = answer.read(HEADER_SIZE)
            if len(header) < HEADER_SIZE:
                return b""
            length = struct.unpack_from("<i", header)[0]
            return answer.read(min(length - HEADER_SIZE, ANSWER_LIMIT))


def is_fine(answer: bytes) -> bool:
    return b"\x01ok\0" + struct.pack("<d", 1.0) in answer


def _document(fields: Mapping[str, Value]) -> bytes:
    elements = b"".join(_element(name, value) for name, value in fields.items())
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def _element(name: str, value: Value) -> bytes:
    key = name.encode() + b"\0"
    match value:
        case int():
            return b"\x10" + key + struct.pack("<i", value)
        case str():
            text = value.encode() + b"\0"
            return b"\x02" + key + struct.pack("<i", len(text)) + text
        case Mapping():
            return b"\x03" + key + _document(value)
    return b"\x04" + key + _document({str(index): item for index, item in enumerate(value)})
