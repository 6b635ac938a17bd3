"""A circuit breaker for each engine: one that hangs, or is gone, takes only its own work along.

    closed  -> doubted   a call fails for want of the engine, or nothing was heard for a while and calls wait
    doubted -> closed    the engine itself answers a probe, or any call
    doubted -> open      it does neither: calls that wait are interrupted, new ones refused at once
    open    -> closed    a probe in the background is answered

So no call opens it, neither a slow one nor many that fail: only an engine that does not answer at all.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from toolscript.core.errors import Unavailable
from toolscript.core.retrieval.deadline import RETRY_AFTER_SECONDS, Deadline

# A search makes several calls; an engine that answers none gets no more than so many at a time.
PLACES_IN_DOUBT = 8

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long an engine may be silent before it is asked, and how long it has for that answer."""

    silent_seconds: float = 0.5
    probe_seconds: float = 1.5
    pause_seconds: float = 0.25


# A command waits rather than fails: nobody else is kept waiting.
OF_COMMANDS = Patience(silent_seconds=10.0, probe_seconds=20.0)


@dataclass(frozen=True)
class Engine:
    """`probe` asks the cheapest question, and raises `Unavailable` for want of an answer; `refusal` is the class
    of refusals. `is_failure` tells an engine that could not be asked from one that refused.
    """

    name: str
    refusal: type[Unavailable]
    probe: Callable[[], Coroutine[Any, Any, None]]
    is_failure: Callable[[BaseException], bool]

    def does_not_answer(self) -> Unavailable:
        hint = f"try again in {RETRY_AFTER_SECONDS} second"
        details = {"engine": self.name, "retry_after_seconds": RETRY_AFTER_SECONDS}
        return self.refusal(f"{self.name} does not answer", hint=hint, details=details)


@dataclass(eq=False)
class Call:
    """`interrupt` ends the call when the breaker opens."""

    interrupt: Callable[[], None] = field(default=lambda: None)
    was_interrupted: bool = False

    @asynccontextmanager
    async def cancelled(self) -> AsyncIterator[None]:
        """Let an interrupt cancel what is awaited here. Raise TimeoutError then."""
        async with asyncio.timeout(None) as timer:
            self.interrupt = lambda: timer.reschedule(0)
            try:
                yield
            finally:
                self.interrupt = lambda: None


class Breaker:
    def __init__(self, engine: Engine, patience: Patience = OF_COMMANDS) -> None:
        self._engine = engine
        self._patience = patience
        self._calls: dict[Call, None] = {}
        # When a call was answered, or began while no other was waiting; and the same with answered probes.
        self._answered_at = self._heard_at = float("-inf")
        # How often the engine has answered a call or a probe: a call that begins is no answer.
        self._answers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self.is_open = False

    @contextmanager
    def call(self) -> Iterator[Call]:
        """Raise the engine's refusal at once while it does not answer."""
        call = self._begin()
        try:
            yield call
        except (asyncio.CancelledError, GeneratorExit):
            # The caller went away: that tells nothing of the engine.
            raise
        except BaseException as error:
            if not self._engine.is_failure(error):
                self._answered()
            elif call.was_interrupted:
                raise self._engine.does_not_answer() from error
            else:
                self._doubt()
            raise
        else:
            self._answered()
        finally:
            self._calls.pop(call, None)

    @contextmanager
    def opened(self) -> Iterator["Breaker"]:
        """Stop asking at the end."""
        try:
            yield self
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._asking is not None:
                self._asking.cancel()

    def _begin(self) -> Call:
        now = time.monotonic()
        is_silent = bool(self._calls) and now - self._answered_at >= self._patience.silent_seconds
        if self.is_open or (is_silent and len(self._calls) >= PLACES_IN_DOUBT):
            # Whatever ended the last task, an open breaker is always being asked.
            self._doubt()
            raise self._engine.does_not_answer()
        if not self._calls:
            self._answered_at = self._heard_at = now
        call = Call()
        self._calls[call] = None
        if self._timer is None:
            self._look_in(self._patience.silent_seconds)
        return call

    def _answered(self) -> None:
        self._answered_at = self._heard_at = time.monotonic()
        self._answers += 1

    def _look_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Doubt an engine that lets calls wait and says nothing. Looks again for as long as there are calls."""
        self._timer = None
        if not self._calls:
            return
        silent = time.monotonic() - self._heard_at
        if silent >= self._patience.silent_seconds:
            self._doubt()
            silent = 0.0
        self._look_in(self._patience.silent_seconds - silent)

    def _doubt(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_until_it_answers())

    async def _ask_until_it_answers(self) -> None:
        answers = self._answers
        reason = await self._ask()
        # Under load the answer to a call may be here before that to the probe.
        if reason is None or self._answers > answers:
            self.is_open = False
            return
        self._open(reason)
        while self.is_open:
            await asyncio.sleep(self._patience.pause_seconds)
            self.is_open = await self._ask() is not None
        logger.info("%s answers again", self._engine.name, extra={"engine": self._engine.name})

    async def _ask(self) -> str | None:
        """Ask the engine, and return the reason if it does not answer."""
        try:
            await Deadline(self._patience.probe_seconds).spend(1.0, self._engine.probe())
        except TimeoutError:
            return "no answer in time"
        except asyncio.CancelledError as error:
            # A driver cancels a call of its own when its connection goes; only our own end is one.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return str(error) or "the connection went"
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine has to be asked again
            return str(error) or type(error).__name__
        self._heard_at = time.monotonic()
        self._answers += 1
        return None

    def _open(self, reason: str) -> None:
        self.is_open = True
        facts = {"engine": self._engine.name, "reason": reason, "interrupted": len(self._calls)}
        name = self._engine.name
        logger.warning("%s does not answer; what needs it is refused until it does", name, extra=facts)
        for call in list(self._calls):
            call.was_interrupted = True
            # Once: what is being interrupted may still be ending when the breaker opens again.
            interrupt, call.interrupt = call.interrupt, lambda: None
            interrupt()
