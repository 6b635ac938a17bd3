"""Sampler of CPU time by stack, in this process or in one that runs another module.

Each Python thread has a timer of its own CPU time; when it fires, the time is added to the stack of the thread. So
a thread that waits costs nothing, and time in C code counts for its caller. Linux alone has such timers.

python -m benchmarks.sampler profile.json benchmarks.other_constants NAME=VALUE -- serve --port 8080

SIGUSR1 begins a profile, the next one ends and writes it.
"""

import ctypes
import json
import runpy
import signal
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

INTERVAL_NANOSECONDS = 1_000_000
SIGEV_THREAD_ID = 4
# Functions in which threads of a pool wait for work.
WAITING = ("_worker", "wait", "get", "_wait_for_tstate_lock", "select")
SELF = "benchmarks/sampler.py"
# Folders that module names begin after, and what a path is shortened to without any of them.
ROOTS = ("site-packages/", "/src/", "/lib/python")

# The outermost function first.
Stack = tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """CPU milliseconds by stack; `native_ms` is that of threads without Python code, `samples` their number."""

    spent_ms: Mapping[Stack, float]
    native_ms: float
    samples: int

    @property
    def total_ms(self) -> float:
        return sum(self.spent_ms.values()) + self.native_ms

    def to_json(self) -> dict[str, object]:
        stacks = [{"stack": list(stack), "ms": round(spent, 4)} for stack, spent in sorted(self.spent_ms.items())]
        return {"samples": self.samples, "native_ms": round(self.native_ms, 3), "stacks": stacks}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Profile":
        stacks = data["stacks"]
        assert isinstance(stacks, list)
        spent = {tuple(map(str, entry["stack"])): float(entry["ms"]) for entry in stacks}
        return cls(spent, float(str(data["native_ms"])), int(str(data["samples"])))


class _Timer:
    """A timer of a thread's CPU time, which sends a signal to the main thread."""

    def __init__(self, clock: int, number: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        event = struct.pack("=qiii44x", 0, number, SIGEV_THREAD_ID, threading.main_thread().native_id or 0)
        self._id = ctypes.c_void_p()
        self._check(self._libc.timer_create(clock, ctypes.create_string_buffer(event), ctypes.byref(self._id)))
        interval = struct.pack("=qqqq", 0, INTERVAL_NANOSECONDS, 0, INTERVAL_NANOSECONDS)
        self._check(self._libc.timer_settime(self._id, 0, ctypes.create_string_buffer(interval), None))

    def end(self) -> None:
        self._check(self._libc.timer_delete(self._id))

    @staticmethod
    def _check(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), "no timer of a thread's CPU time")


class Sampler:
    """Samples between `start` and `stop`, which the main thread calls; threads that begin later have no timer."""

    def __init__(self) -> None:
        self._spent: Counter[tuple[CodeType, ...]] = Counter()
        self._marks: dict[int, int] = {}
        self._timers: list[_Timer] = []
        self._samples = 0
        self._began = self._own = 0

    def start(self) -> None:
        self._spent.clear()
        self._samples = self._own = 0
        signal.signal(signal.SIGPROF, self._sample_main)
        signal.signal(signal.SIGRTMIN, self._sample_others)
        main = threading.get_ident()
        self._marks = {ident: _thread_cpu(ident) for ident in sys._current_frames()}  # noqa: SLF001
        self._began = time.process_time_ns()
        self._timers = [
            _Timer(time.pthread_getcpuclockid(ident), signal.SIGPROF if ident == main else signal.SIGRTMIN)
            for ident in self._marks
        ]

    def stop(self) -> Profile:
        for timer in self._timers:
            timer.end()
        whole = time.process_time_ns() - self._began - self._own
        spent: Counter[Stack] = Counter()
        for codes, nanoseconds in self._spent.items():
            spent[stack_of(codes)] += nanoseconds
        native = max(0, whole - sum(spent.values()))
        return Profile({stack: value / 1e6 for stack, value in spent.items()}, native / 1e6, self._samples)

    def _sample_main(self, _: int, frame: FrameType | None) -> None:
        began, main = time.thread_time_ns(), threading.get_ident()
        self._spent[_codes(frame)] += began - self._marks[main]
        self._end_sample(main, began)

    def _sample_others(self, _: int, __: FrameType | None) -> None:
        began, main = time.thread_time_ns(), threading.get_ident()
        # Without the lock of the interpreter no thread ends meanwhile, so that each of these has a clock.
        for ident, innermost in sys._current_frames().items():  # noqa: SLF001
            # A thread that waits keeps its time for the next sample.
            if ident != main and innermost.f_code.co_name not in WAITING:
                now = _thread_cpu(ident)
                self._spent[_codes(innermost)] += now - self._marks.get(ident, 0)
                self._marks[ident] = now
        self._own += time.thread_time_ns() - began
        # The main thread's own time goes on, without that of this sample.
        self._marks[main] += time.thread_time_ns() - began

    def _end_sample(self, main: int, began: int) -> None:
        self._samples += 1
        self._marks[main] = time.thread_time_ns()
        self._own += self._marks[main] - began


def _thread_cpu(ident: int) -> int:
    return time.clock_gettime_ns(time.pthread_getcpuclockid(ident))


def _codes(frame: FrameType | None) -> tuple[CodeType, ...]:
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(codes))


def stack_of(codes: Iterable[CodeType]) -> Stack:
    """Return the names of functions with their files, without what starts the process."""
    names = [f"{short_path(code.co_filename)}:{code.co_name}" for code in codes]
    started = max((place for place, name in enumerate(names) if _is_start(name)), default=-1)
    return tuple(names[started + 1 :])


def _is_start(name: str) -> bool:
    return name.startswith((SELF, "<frozen runpy>", "benchmarks/other_constants.py"))


def short_path(path: str) -> str:
    for root in ROOTS:
        if root in path:
            return path.rpartition(root)[2].partition("/")[2] if root == ROOTS[-1] else path.rpartition(root)[2]
    parts = Path(path).parts
    return "/".join(parts[parts.index("benchmarks") :]) if "benchmarks" in parts else path.rpartition("/")[2]


def main(arguments: Sequence[str]) -> None:
    file, module = Path(arguments[0]), arguments[1]
    sampler, running = Sampler(), threading.Event()

    def toggle(_: int, __: FrameType | None) -> None:
        if not running.is_set():
            running.set()
            sampler.start()
            return
        running.clear()
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(sampler.stop().to_json()), "utf-8")
        partial.replace(file)

    signal.signal(signal.SIGUSR1, toggle)
    sys.argv = [module, *arguments[2:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
