"""A Qdrant, a PostgreSQL and a MongoDB of a test's own, which it may stop and kill."""

import os
import shutil
import signal
import sys
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolscript.core.settings.service import Settings

if TYPE_CHECKING:
    from engine_parts.fleet import Fleet

ROOT = Path(__file__).parents[2]
QDRANT, POSTGRES, MONGO = "qdrant", "postgres", "mongo"


@dataclass(frozen=True)
class OwnEngines:
    fleet: "Fleet"

    @property
    def settings(self) -> Settings:
        from engine_parts.reports import variables

        values = {name.removeprefix("TOOLSCRIPT_").lower(): text for name, text in variables(self.fleet).items()}
        return Settings.model_validate(values)

    @contextmanager
    def stopped(self, engine: str) -> Iterator[None]:
        """Freeze the engine with all processes that it has, as a machine that hangs would."""
        pids = self._pids(engine)
        try:
            for pid in pids:
                _send(pid, signal.SIGSTOP)
            yield
        finally:
            # The parent last: it would take a child that has not gone on yet for a lost one.
            for pid in reversed(pids):
                _send(pid, signal.SIGCONT)

    def kill(self, engine: str) -> None:
        for pid in reversed(self._pids(engine)):
            _send(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.fleet.state.processes[engine].pid, 0)

    def start(self) -> None:
        with warnings.catch_warnings():
            # Engines normally outlive the process that starts them; here they do not.
            warnings.simplefilter("ignore", ResourceWarning)
            self.fleet.start(cluster=False)

    def end(self) -> None:
        for engine in (QDRANT, POSTGRES, MONGO):
            if engine in self.fleet.state.processes:
                self.kill(engine)
        shutil.rmtree(self.fleet.places.home)

    def _pids(self, engine: str) -> list[int]:
        """Return the processes of an engine, a parent before its children."""
        pids = [self.fleet.state.processes[engine].pid]
        for pid in pids:
            with suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return pids


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def own_engines() -> Iterator[OwnEngines]:
    sys.path.append(str(ROOT / "scripts"))
    from engine_parts.fleet import Fleet
    from engine_parts.places import Places, places_for

    shared = places_for(ROOT)
    engines = OwnEngines(Fleet(Places(shared.root, shared.root / f"own_{uuid.uuid4().hex[:12]}")))
    try:
        # Two that start at once must not choose the same ports.
        with engines.fleet.places.locked():
            engines.start()
        yield engines
    finally:
        engines.end()
