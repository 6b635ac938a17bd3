"""Free loopback ports, below the range the kernel hands to outgoing connections."""

import random
import socket
from collections.abc import Collection

from .messages import EnginesError

LOWEST, HIGHEST = 20000, 32000
ATTEMPTS = 500


def choose_port(previous: int | None, count: int, taken: Collection[int]) -> int:
    """Return the first of `count` consecutive free ports; the previous one if it is still free."""
    if previous is not None and are_free(previous, count):
        return previous
    for _ in range(ATTEMPTS):
        first = random.randrange(LOWEST, HIGHEST)
        # A gap of 3 keeps clear of the followers that a taken first port may own.
        far = all(abs(first - other) > 3 for other in taken)
        if far and are_free(first, count):
            return first
    raise EnginesError(f"found no {count} free ports in a row on 127.0.0.1 in {LOWEST}..{HIGHEST}")


def are_free(first: int, count: int) -> bool:
    return all(_is_free(port) for port in range(first, first + count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do; otherwise a connection in TIME_WAIT makes our own last port look busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
