"""Separate process beside the gateway that ends the gateway's children if the gateway is killed.

It reads `+group` and `-group` lines; its input closes when the gateway ends, however that happens. It runs by
its path, without site packages, and so imports only the standard library.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_SECONDS = 1.0


def groups_left(lines: Iterable[str]) -> set[int]:
    groups: set[int] = set()
    for line in lines:
        change, group = line[:1], int(line[1:])
        groups = groups | {group} if change == "+" else groups - {group}
    return groups


def send(groups: set[int], number: int) -> set[int]:
    """Signal the groups; return those that still exist."""
    left = set()
    for group in groups:
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            pass
        left.add(group)
    return left


def end(groups: set[int]) -> None:
    left = send(groups, signal.SIGTERM)
    give_up = time.monotonic() + GRACE_SECONDS
    while left and time.monotonic() < give_up:
        time.sleep(0.02)
        left = send(left, 0)
    send(left, signal.SIGKILL)


if __name__ == "__main__":
    end(groups_left(sys.stdin))
