"""Timing of a supervised connection, and its events between two requests."""

import asyncio
import math
import random
from dataclasses import dataclass


class Signals:
    """Events of a connection. The supervisor waits for `wakeup`, then handles the flags that are set."""

    def __init__(self) -> None:
        self.wakeup = asyncio.Event()
        self.lost = False
        self.changed = False
        self.ping_requested = False

    def lose(self) -> None:
        self.lost = True
        self.wakeup.set()

    def change(self) -> None:
        """The server's lists have changed since the last listing."""
        self.changed = True
        self.wakeup.set()

    def request_ping(self) -> None:
        """Request a ping: a stream or call ended unexpectedly, and the server may be gone."""
        self.ping_requested = True
        self.wakeup.set()

    def reset(self) -> None:
        """Clear the events of a failed attempt before another attempt with the same server."""
        self.lost = self.changed = self.ping_requested = False

    def take_changed(self) -> bool:
        taken, self.changed = self.changed, False
        return taken

    def take_ping_requested(self) -> bool:
        taken, self.ping_requested = self.ping_requested, False
        return taken


@dataclass(frozen=True)
class Timing:
    """Durations in seconds. The defaults suit interactive use; tests use shorter ones.

    `idle`: how long after its last call a server is put to sleep; infinite: it never sleeps. One that was only
    listed sleeps after `linger`, in which it may still report a change. A sleeping one is listed again after
    `list_after`. One that needs a sign-in is tried again after `sign_in_again`, though nobody has signed in.
    """

    first_retry: float = 0.5
    max_retry: float = 60.0
    settled_after: float = 30.0
    debounce: float = 0.1
    ping_after: float = 30.0
    ping_timeout: float = 10.0
    shutdown: float = 1.0
    close: float = 5.0
    # A server of the older protocol may never answer an unknown request. A handshake with a slow server of the
    # newer protocol is harmless: the server rejects it, and discovery runs again.
    probe: float = 5.0
    idle: float = math.inf
    linger: float = 2.0
    list_after: float = 24 * 3600.0
    sign_in_again: float = 15 * 60.0

    def retry_after(self, failures: int) -> float:
        """Return the delay: exponential backoff with jitter, so that servers do not all restart together."""
        upper = min(self.max_retry, self.first_retry * 2.0 ** min(failures - 1, 30))
        return upper * random.uniform(0.5, 1.0)  # noqa: S311 - not used for security
