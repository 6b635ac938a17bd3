"""An event loop whose clock jumps to the next event: a minute takes no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from benchmarks.open_loop import Answer

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        assert ready or timeout is not None, "nothing will ever happen"
        self.now += timeout or 0.0
        return ready


class VirtualTime(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(work)


class FakeLine:
    """Responds at the time that `when` returns for the time of the request; None for never."""

    def __init__(self, when: Callable[[float], float | None], answer: Answer | None = None) -> None:
        self._when = when
        self._answer = answer or Answer()
        self.requests: list[bytes] = []
        self.given_up = 0

    def send(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        self.requests.append(request)
        loop = asyncio.get_running_loop()
        moment = self._when(loop.time())
        if moment is not None:
            loop.call_at(moment, answered, self._answer)

    def give_up(self) -> None:
        self.given_up += 1
