"""A pool of threads for one kind of work, which no other work waits for, nor the end of the program."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MAX_REST_SECONDS = 0.5

Work = tuple["Future[Any]", Callable[[], Any]]


class DaemonThreads:
    """At most `count` threads, started when they are needed.

    After each work a thread rests `rests` times as long as that took of a processor: threads take turns with the
    rest of the program, which would be slow beside one that always has work.
    """

    def __init__(self, name: str, count: int, rests: float = 0.0) -> None:
        self._name = name
        self._count = count
        self._rests = rests
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._free = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Run like `asyncio.to_thread`."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Return the future of the work; it is `running` from its begin on, which another's end may delay."""
        context, future = copy_context(), Future[T]()
        with self._lock:
            if self._free:
                self._free -= 1
            elif self._started < self._count:
                self._started += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        self._queue.put((future, lambda: context.run(work)))
        return future

    def _work(self) -> None:
        while True:
            future, work = self._queue.get()
            began = time.thread_time()
            self._do(future, work)
            if self._rests:
                time.sleep(min(MAX_REST_SECONDS, self._rests * (time.thread_time() - began)))
            with self._lock:
                # Each thread that waits is free once, for the next that is submitted.
                self._free += self._queue.empty()

    @staticmethod
    def _do(future: "Future[Any]", work: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(error)


# For what takes as long as what servers send is large. Nothing that every request needs is done on these.
OF_SERVERS = DaemonThreads("texts of servers", 4)
