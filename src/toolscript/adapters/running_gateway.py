"""Which gateway is running for a set of config files, so that a command can find and stop it."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunningGateway:
    pid: int
    url: str
    version: str
    model: str
    files: tuple[str, ...]


class RunningFile:
    def __init__(self, folder: Path, config_files: Sequence[Path]) -> None:
        self._files = tuple(str(path) for path in config_files)
        key = hashlib.sha256(json.dumps(self._files).encode()).hexdigest()[:16]
        self._path = folder / f"gateway-{key}.json"

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """The gateway that wrote itself down, if its process still lives."""
        try:
            data = json.loads(self._path.read_text("utf-8"))
            running = RunningGateway(
                int(data["pid"]), str(data["url"]), str(data["version"]), str(data["model"]), self._files
            )
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return running if _lives(running.pid) else None

    def write(self, url: str, version: str, model: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(asdict(RunningGateway(os.getpid(), url, version, model, self._files))), "utf-8")
        new.replace(self._path)

    def remove(self) -> None:
        running = self.read()
        if running is None or running.pid == os.getpid():
            self._path.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    # 0 and less are groups of processes, ours among them, and whoever reads this may go on to end it.
    if pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
