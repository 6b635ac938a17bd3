"""All engines of one checkout: which belong together, and bringing them up and down."""

import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from . import processes
from .messages import EnginesError, say
from .mongo import Mongo
from .places import Places
from .ports import are_free, choose_port
from .postgres import Postgres
from .processes import Launch
from .qdrant import CLUSTER_NODES, QdrantNode
from .state import State, load_state

LAUNCHES = 4


class Engine(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def port_count(self) -> int: ...
    @property
    def keeps_port(self) -> bool: ...
    @property
    def must_settle_first(self) -> bool: ...
    @property
    def stop_signal(self) -> signal.Signals: ...
    @property
    def ready_seconds(self) -> float: ...
    def prepare(self) -> None: ...
    def launch(self, port: int) -> Launch: ...
    def is_ready(self, port: int) -> bool: ...
    def finish(self, port: int) -> None: ...


@dataclass
class Fleet:
    places: Places
    state: State = field(init=False)

    def __post_init__(self) -> None:
        self.reload()

    def reload(self) -> None:
        self.state = load_state(self.places.state_file)

    def engines(self) -> list[Engine]:
        return [*self.qdrant_nodes(self.state.cluster), Postgres(self.places), Mongo(self.places)]

    def qdrant_nodes(self, cluster: bool) -> list[QdrantNode]:
        if not cluster:
            return [QdrantNode(self.places)]
        return [self.cluster_node(number) for number in CLUSTER_NODES]

    def cluster_node(self, number: int) -> QdrantNode:
        first = self.state.ports.get("qdrant-1")
        joins = number != CLUSTER_NODES[0] and first is not None
        return QdrantNode(self.places, number, first + 2 if joins and first else None)

    def is_up(self, engine: Engine) -> bool:
        return self.is_alive(engine) and engine.is_ready(self.state.ports[engine.name])

    def is_alive(self, engine: Engine) -> bool:
        process = self.state.processes.get(engine.name)
        return process is not None and processes.is_alive(process)

    def start(self, cluster: bool) -> None:
        self.stop(self.qdrant_nodes(not cluster))
        self.state.cluster = cluster
        self.state.save()
        self.start_engines(self.engines())

    def start_engines(self, engines: Sequence[Engine]) -> None:
        dead = [engine.name for engine in engines if not self.is_alive(engine)]
        for engine in engines:
            if engine.name in dead:
                engine.prepare()
        for engine in engines:
            if engine.name in dead:
                self._launch_in_turn(engine)
        for engine in engines:
            self._wait_until_up(engine)
            if engine.name in dead:
                engine.finish(self.state.ports[engine.name])

    def stop(self, engines: Sequence[Engine]) -> None:
        for engine in engines:
            if self.is_alive(engine):
                say(f"stopping {engine.name}")
                if not processes.stop(self.state.processes[engine.name], engine.stop_signal):
                    say(f"{engine.name} did not stop within {processes.STOP_SECONDS} s and was killed")
            self._forget(engine)

    def kill(self, engine: Engine) -> None:
        if self.is_alive(engine):
            processes.kill(self.state.processes[engine.name])
        self._forget(engine)

    def stop_everything(self) -> None:
        self.stop([*self.qdrant_nodes(not self.state.cluster), *self.engines()])

    def wipe(self) -> None:
        self.stop_everything()
        shutil.rmtree(self.places.home)

    def _forget(self, engine: Engine) -> None:
        if self.state.processes.pop(engine.name, None):
            self.state.save()

    def _launch_in_turn(self, engine: Engine) -> None:
        settles = engine.must_settle_first
        self._launch(self._current(engine))
        if settles:
            self._wait_until_up(engine)

    def _current(self, engine: Engine) -> Engine:
        """A joining node must know the port its first peer has now, which may just have been chosen."""
        if isinstance(engine, QdrantNode) and engine.number is not None:
            return self.cluster_node(engine.number)
        return engine

    def _launch(self, engine: Engine) -> None:
        port = self._port(engine)
        say(f"starting {engine.name} on 127.0.0.1:{port}")
        if engine.name in self.state.processes:
            processes.wait_until_reaped(self.state.processes[engine.name])
        self.state.ports[engine.name] = port
        self.state.processes[engine.name] = processes.spawn(engine.launch(port))
        self.state.save()

    def _port(self, engine: Engine) -> int:
        previous = self.state.ports.get(engine.name)
        if engine.keeps_port and previous is not None:
            if not are_free(previous, engine.port_count):
                raise EnginesError(
                    f"{engine.name} must keep its ports from {previous} on, but another process holds one; "
                    "end that process or run `scripts/engines reset`"
                )
            return previous
        taken = [port for name, port in self.state.ports.items() if name != engine.name]
        return choose_port(previous, engine.port_count, taken)

    def _wait_until_up(self, engine: Engine) -> None:
        deadline = time.monotonic() + engine.ready_seconds
        launches_left = LAUNCHES - 1
        while not self.is_up(engine):
            if not self.is_alive(engine):
                # A port lost to someone else, or the children of a killed server still hold its data.
                self._relaunch(engine, launches_left)
                launches_left -= 1
            elif time.monotonic() > deadline:
                self._give_up(engine, f"gave no answer within {engine.ready_seconds:.0f} s")
            time.sleep(0.1)

    def _relaunch(self, engine: Engine, launches_left: int) -> None:
        if launches_left == 0:
            self._give_up(engine, f"ended right after starting, {LAUNCHES} times")
        time.sleep(1)
        self._launch(self._current(engine))

    def _give_up(self, engine: Engine, problem: str) -> None:
        log = self.places.log(engine.name)
        say(processes.tail(log))
        raise EnginesError(f"{engine.name} {problem}; see {log}")
