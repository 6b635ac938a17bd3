"""How `serve` ends: it drains, stops listening, finishes what is under way, and waits for nobody for ever."""

import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn

from toolscript.surfaces.http.health import CheckHealth, Health, PartHealth

# `nohup` has the first of them ignored, and so it stays.
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, name))


@dataclass
class Draining:
    """Whether this process is about to end."""

    begun: bool = False

    def seen_by(self, check_health: CheckHealth) -> CheckHealth:
        async def check() -> Health:
            if self.begun:
                return Health({"serving": PartHealth(ok=False, needed=True, note="it is about to end")})
            return await check_health()

        return check


class Server(uvicorn.Server):
    """Told once, it answers for `drain_seconds` more; told twice, or by Ctrl+C, it stops at once."""

    def __init__(
        self, config: uvicorn.Config, draining: Draining, drain_seconds: float, on_started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._on_started = on_started
        self._stops_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._draining.begun = True
        if self._stops_at is not None or sig == signal.SIGINT or not self._drain_seconds:
            super().handle_exit(sig, frame)
        else:
            self._stops_at = time.monotonic() + self._drain_seconds

    async def on_tick(self, counter: int) -> bool:
        if self._stops_at is not None and time.monotonic() >= self._stops_at:
            self.should_exit = True
        return await super().on_tick(counter)

    def listen_to_signals(self) -> None:
        """From now on: uvicorn listens when it serves, not to SIGHUP, and raises again what has stopped it."""
        for sign in ENDING_SIGNALS:
            if signal.getsignal(sign) is not signal.SIG_IGN:
                signal.signal(sign, self.handle_exit)
