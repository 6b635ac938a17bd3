"""A separate Qdrant that requires keys or certificates, beside the engine that all tests share."""

import os
import shutil
import signal
import socket
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]

if TYPE_CHECKING:
    from engine_parts.places import Places
    from engine_parts.processes import Launch


@contextmanager
def engine_folder(name: str) -> Iterator[Path]:
    """Return a folder that the unprivileged user of a server can enter, unlike the folder of a test."""
    sys.path.append(str(ROOT / "scripts"))
    from engine_parts.places import places_for

    folder = places_for(ROOT).root / f"{name}_{uuid.uuid4().hex[:12]}"
    folder.mkdir(mode=0o755, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def secured_qdrant(home: Path, service: Sequence[str], more: Sequence[str] = ()) -> Iterator[int]:
    """Yield its gRPC port. `service` and `more` are lines of its config, for that section and for others."""
    from engine_parts.places import places_for
    from engine_parts.processes import spawn, wait_until

    shared = places_for(ROOT)
    with shared.locked():
        launch, port = _launch(type(shared)(shared.root, home), service, more)
        with warnings.catch_warnings():
            # Engines normally outlive the process that starts them; here they do not.
            warnings.simplefilter("ignore", ResourceWarning)
            process = spawn(launch)
        assert wait_until(lambda: listens(port + 1), 60), launch.log.read_text()
    try:
        yield port + 1
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)


def _launch(places: "Places", service: Sequence[str], more: Sequence[str]) -> tuple["Launch", int]:
    from engine_parts.ports import choose_port
    from engine_parts.qdrant import QdrantNode

    node = QdrantNode(places, service_settings=tuple(service), other_settings=tuple(more))
    node.prepare()
    port = choose_port(None, 2, ())
    return node.launch(port), port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
