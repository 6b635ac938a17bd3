"""Three Qdrant nodes of a test's own, beside the engine that all tests share."""

import asyncio
import os
import shutil
import signal
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine_parts.fleet import Fleet

ROOT = Path(__file__).parents[2]
NODES = (1, 2, 3)


@dataclass(frozen=True)
class Cluster:
    fleet: "Fleet"

    def grpc_port(self, node: int) -> int:
        return self.fleet.state.ports[f"qdrant-{node}"] + 1

    def kill(self, node: int) -> None:
        """Kill the node, as a crash would."""
        pid = self.fleet.state.processes[f"qdrant-{node}"].pid
        os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    async def start_again(self, node: int) -> None:
        await asyncio.to_thread(self.start, [node])

    def start(self, nodes: Sequence[int]) -> None:
        with warnings.catch_warnings():
            # Engines normally outlive the process that starts them; here they do not.
            warnings.simplefilter("ignore", ResourceWarning)
            self.fleet.start_engines([self.fleet.cluster_node(node) for node in nodes])

    def end(self) -> None:
        for process in self.fleet.state.processes.values():
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process.pid, signal.SIGKILL)
                os.waitpid(process.pid, 0)
        shutil.rmtree(self.fleet.places.home)


@contextmanager
def fresh_cluster() -> Iterator[Cluster]:
    sys.path.append(str(ROOT / "scripts"))
    from engine_parts.fleet import Fleet
    from engine_parts.places import Places, places_for

    shared = places_for(ROOT)
    fleet = Fleet(Places(shared.root, shared.root / f"cluster_{uuid.uuid4().hex[:12]}"))
    fleet.state.cluster = True
    cluster = Cluster(fleet)
    try:
        # Two that start at once must not choose the same ports.
        with fleet.places.locked():
            cluster.start(NODES)
        yield cluster
    finally:
        cluster.end()
