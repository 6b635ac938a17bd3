"""A connection to the engine that fails at a chosen call, as if the process had been killed there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from toolscript.core.qdrant.connection import Qdrant


class Killed(BaseException):
    """BaseException, which no code of the package catches."""


@dataclass
class Death:
    """Fail at the n-th call of a method: before it is sent, or after it is done but before its response."""

    method: str
    turn: int
    after: bool
    seen: int = field(default=0)

    async def around(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.seen += name == self.method
        dies = name == self.method and self.seen == self.turn
        if dies and not self.after:
            raise Killed
        answer = await call()
        if dies:
            raise Killed
        return answer


def dying(qdrant: Qdrant, death: Death) -> Qdrant:
    return Qdrant(_Stub(qdrant.points, death), _Stub(qdrant.collections, death), qdrant.timeout_seconds)


@dataclass(frozen=True)
class _Stub:
    stub: Any
    death: Death

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self.death.around(name, lambda: getattr(self.stub, name)(*args, **kwargs))

        return call
