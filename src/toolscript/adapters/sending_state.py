"""How far sending documents has come, in a file: whoever is killed goes on from there."""

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolscript.errors import InvalidRequest, SetupError
from toolscript.model.document_sending import Place, SendingReport
from toolscript.model.documents import PutOutcome

FORMAT = "toolscript documents put 1"


@dataclass(frozen=True)
class SendingState:
    """Everything up to `place` was acknowledged; None at the beginning."""

    began_at: float = field(default_factory=time.time)
    place: Place | None = None
    report: SendingReport = field(default_factory=SendingReport)


class SendingFile:
    """`run` is what is sent and to whom: a state of another run is none of this one."""

    def __init__(self, path: Path, run: Sequence[str]) -> None:
        self._path = path
        self._run = list(run)

    def load(self) -> SendingState:
        """Refuses what is not certainly ours: it would be overwritten."""
        try:
            data = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return SendingState()
        except OSError as error:
            raise SetupError(f"cannot read {self._path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise self._foreign("holds no state of sending documents") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise self._foreign("holds no state of sending documents")
        if data.get("run") != self._run:
            raise self._foreign("is the state of other documents, or of another service")
        try:
            return _state(data)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._foreign("holds no state of sending documents") from None

    def save(self, state: SendingState) -> None:
        report = state.report
        data = {
            "format": FORMAT,
            "run": self._run,
            "began_at": state.began_at,
            "place": None if state.place is None else asdict(state.place),
            "outcomes": report.outcomes,
            "skipped": report.skipped,
            "named": report.named,
        }
        try:
            _write_whole(self._path, data)
        except OSError as error:
            raise SetupError(
                f"cannot write {self._path}: {error.strerror}", hint="--resume names another file"
            ) from error

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _foreign(self, problem: str) -> InvalidRequest:
        return InvalidRequest(f"{self._path} {problem}", hint="--resume names another file; or remove this one")


def _state(data: Any) -> SendingState:
    outcomes = Counter({PutOutcome(name): int(count) for name, count in data["outcomes"].items()})
    named = [(str(where), str(reason)) for where, reason in data["named"]]
    report = SendingReport(outcomes, int(data["skipped"]), named)
    report.sent_before = report.done
    at = data["place"]
    steps = tuple(str(step) for step in at["steps"])
    place = Place(int(at["path"]), steps, int(at["offset"]), int(at["line"]))
    return SendingState(float(data["began_at"]), place, report)


def _write_whole(path: Path, data: object) -> None:
    """As it was or as it is now, whoever dies meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
