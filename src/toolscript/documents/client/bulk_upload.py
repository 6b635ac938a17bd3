"""A resumable bulk upload of files to a running service."""

import hashlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from toolscript.client.clients import Client
from toolscript.client.resource import Sync
from toolscript.client.resources.documents import MAX_IN_REQUEST, MAX_REQUEST_BYTES, Documents
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.client.files import DocumentFiles, Found, FoundDocument, names_of
from toolscript.documents.model.document import PutOutcome, document_to_json
from toolscript.documents.model.upload import Place, UploadReport

FORMAT = "toolscript documents put 1"

MAX_TRIES = 8
# Upper limit for the pause that a service requests.
MAX_WAIT = 300.0
TASK = "sending documents"

# In place of a file name: a state file in the data folder.
DEFAULT_STATE = "default"

Json = dict[str, Any]


@dataclass(frozen=True)
class UploadState:
    """Everything up to `place` is acknowledged; None at the beginning."""

    began_at: float = field(default_factory=time.time)
    place: Place | None = None
    report: UploadReport = field(default_factory=UploadReport)


class UploadStateFile:
    """`run` identifies the paths and the service: a state of another run is refused."""

    def __init__(self, path: Path, run: Sequence[str]) -> None:
        self._path = path
        self._run = list(run)

    def load(self) -> UploadState:
        """Load the state. Refuse a file that is not certainly ours: it would be overwritten."""
        try:
            data = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return UploadState()
        except OSError as error:
            raise SetupError(f"cannot read {self._path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise self._foreign("is not a state file of an upload") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise self._foreign("is not a state file of an upload")
        if data.get("run") != self._run:
            raise self._foreign("is the state of another upload, or of another service")
        try:
            return _state(data)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._foreign("is not a state file of an upload") from None

    def save(self, state: UploadState) -> None:
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


def _state(data: Any) -> UploadState:
    outcomes = Counter({PutOutcome(name): int(count) for name, count in data["outcomes"].items()})
    named = [(str(where), str(reason)) for where, reason in data["named"]]
    report = UploadReport(outcomes, int(data["skipped"]), named)
    report.sent_before = report.done
    saved = data["place"]
    steps = tuple(str(step) for step in saved["steps"])
    place = Place(int(saved["path"]), steps, int(saved["offset"]), int(saved["line"]))
    return UploadState(float(data["began_at"]), place, report)


def _write_whole(path: Path, data: object) -> None:
    """Write atomically: after a crash the file has its old or its new content."""
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


class BulkUpload:
    """Puts documents through a client, which retries, and saves its state after each batch."""

    def __init__(
        self,
        documents: Documents[Sync],
        state: UploadState,
        total: int | None,
        *,
        save_state: Callable[[UploadState], None],
        on_progress: OnProgress,
    ) -> None:
        self._documents = documents
        self._state = state
        self._total = total
        self._save_state = save_state
        self._on_progress = on_progress
        self._batch: list[Json] = []
        self._size = 0

    @property
    def report(self) -> UploadReport:
        return self._state.report

    def send(self, found: Iterable[Found]) -> UploadReport:
        """Send documents in batches; save the state after each acknowledged batch, before the next."""
        self._show()
        place: Place | None = None
        for item in found:
            size = len(item.document.text) if isinstance(item, FoundDocument) else 0
            if self._batch and not self._fits(size):
                self._flush(place)
            place = item.place
            if isinstance(item, FoundDocument):
                self._batch.append(document_to_json(item.document))
                self._size += size
            else:
                (self.report.refuse if item.refused else self.report.skip)(item.where, item.reason)
        self._flush(place)
        return self.report

    def _fits(self, size: int) -> bool:
        return len(self._batch) < MAX_IN_REQUEST and self._size + size <= MAX_REQUEST_BYTES

    def _flush(self, place: Place | None) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        for result in self._documents.put(batch).results if batch else ():
            self.report.took(PutOutcome(result.state), result.id or "", result.error or "")
        if place is not None:
            self._state = replace(self._state, place=place)
            self._save_state(self._state)
        self._show()

    def _show(self) -> None:
        self._on_progress(Progress(TASK, self.report.done, self._total))


def put_documents(
    client: Client,
    paths: Sequence[str],
    *,
    resume: str | None,
    states: Path,
    on_progress: OnProgress,
) -> UploadReport:
    """Upload documents. With `resume`, continue an earlier upload and save the state of this one.

    `resume` is a file, or `default` for one in the folder `states`.
    """
    file = None if resume is None else _state_file(resume, states, [client.url, *names_of(paths)])
    state = UploadState() if file is None else file.load()
    files = DocumentFiles(paths, state.place, state.began_at)
    save_state = _discard_state if file is None else file.save
    upload = BulkUpload(client.documents, state, files.count(), save_state=save_state, on_progress=on_progress)
    report = upload.send(files.read())
    if file is not None:
        file.remove()
    return report


def _discard_state(_: UploadState) -> None: ...


def _state_file(resume: str, states: Path, run: Sequence[str]) -> UploadStateFile:
    if resume != DEFAULT_STATE:
        return UploadStateFile(Path(resume), run)
    name = hashlib.sha256("\0".join(run).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return UploadStateFile(states / f"{name}.json", run)
