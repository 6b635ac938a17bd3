"""The user who owns a local TCP connection, on systems that expose it: on Linux, `/proc/net/tcp`."""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

Address = tuple[str, int]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
# A socket that its process has closed lingers without an inode, and is listed as root's.
_ESTABLISHED, _NO_INODE = "01", "0"


def system_exposes_owners() -> bool:
    return sys.platform == "linux" and _TABLES[0].exists()


def comes_from_this_user(client: Address, server: Address) -> bool:
    """Return whether this user owns the socket at the other end of this connection."""
    return owner_of(client, server) == os.getuid()


def owner_of(client: Address, server: Address) -> int | None:
    """Return the user of the socket at `client` that is connected to `server`; None if unknown."""
    pair = f"{_format_ipv4(client)} {_format_ipv4(server)}", f"{_format_ipv6(client)} {_format_ipv6(server)}"
    for table, ends in zip(_TABLES, pair, strict=True):
        for row in _rows_with(table, f" {ends} {_ESTABLISHED} "):
            _, _, _, _, _, _, _, user, _, inode, *_ = row.split()
            if inode != _NO_INODE:
                return int(user)
    return None


def _rows_with(table: Path, part: str) -> Iterator[str]:
    """Yield the rows with this part. A machine has thousands of rows, and each request reads them."""
    try:
        text = table.read_text("ascii")
    except OSError:
        return
    at = text.find(part)
    while at >= 0:
        end = text.find("\n", at)
        yield text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]
        at = text.find(part, at + 1)


def _format_ipv4(address: Address) -> str:
    """Format an address as the kernel does: four bytes in host order, then the port."""
    host, port = address
    [number] = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"


def _format_ipv6(address: Address) -> str:
    """Format the address as IPv4-mapped IPv6."""
    [marker] = struct.unpack("=I", b"\0\0\xff\xff")
    return f"{'0' * 16}{marker:08X}{_format_ipv4(address)}"
