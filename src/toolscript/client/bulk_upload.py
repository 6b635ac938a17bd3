"""Documents in a running service: search, show, remove, and a resumable bulk upload."""

import hashlib
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from toolscript.client.documents import DocumentsClient, PutAnswer
from toolscript.client.settings import ClientSettings, load_client_settings
from toolscript.core.errors import InvalidRequest, SetupError, ToolscriptError, TooManyRequests, Unavailable
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.client.files import DocumentFiles, Found, FoundDocument, names_of
from toolscript.documents.model.document import PutOutcome, document_to_json
from toolscript.documents.model.upload import Place, UploadReport
from toolscript.gateway.settings import load_gateway_settings

FORMAT = "toolscript documents put 1"

MAX_IN_REQUEST = 200
MAX_REQUEST_BYTES = 1024 * 1024
MAX_TRIES = 8
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
# Upper limit for the pause that a service requests.
MAX_WAIT = 300.0
TASK = "sending documents"

# The reason of a pause, and its seconds.
OnWait = Callable[[ToolscriptError, float], None]

# Errors worth a retry.
TRANSIENT = (Unavailable, TooManyRequests)

# In place of a file name: a state file in the data folder.
DEFAULT_STATE = "default"
MAX_REMOVED_AT_ONCE = 1_000


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


@dataclass(frozen=True)
class UploadHooks:
    """How an upload sends documents, saves its state, reports progress and waits."""

    send: Callable[[Sequence[bytes]], PutAnswer]
    save_state: Callable[[UploadState], None]
    on_progress: OnProgress
    on_wait: OnWait
    pause: Callable[[float], None] = time.sleep


class BulkUpload:
    def __init__(self, hooks: UploadHooks, state: UploadState, total: int | None) -> None:
        self._hooks = hooks
        self._state = state
        self._total = total
        self._batch: list[bytes] = []

    @property
    def report(self) -> UploadReport:
        return self._state.report

    def send(self, found: Iterable[Found]) -> UploadReport:
        """Send documents in batches; save the state after each acknowledged batch, before the next."""
        self._show()
        place: Place | None = None
        for item in found:
            line = _line(item) if isinstance(item, FoundDocument) else b""
            if self._batch and not self._fits(line):
                self._flush(place)
            place = item.place
            if isinstance(item, FoundDocument):
                self._batch.append(line)
            else:
                (self.report.refuse if item.refused else self.report.skip)(item.where, item.reason)
        self._flush(place)
        return self.report

    def _fits(self, line: bytes) -> bool:
        size = sum(len(queued) for queued in self._batch) + len(line)
        return len(self._batch) < MAX_IN_REQUEST and size <= MAX_REQUEST_BYTES

    def _flush(self, place: Place | None) -> None:
        batch, self._batch = self._batch, []
        tries = 0
        while batch:
            left, problem = self._send_batch(batch)
            tries = 1 if len(left) < len(batch) else tries + 1
            if problem is not None and (tries >= MAX_TRIES or not isinstance(problem, TRANSIENT)):
                raise problem
            batch = left
            if problem is not None:
                self._wait(problem, tries)
        if place is not None:
            self._state = replace(self._state, place=place)
            self._hooks.save_state(self._state)
        self._show()

    def _send_batch(self, batch: Sequence[bytes]) -> tuple[list[bytes], ToolscriptError | None]:
        """Send a batch; return the documents without a result, and the reason."""
        try:
            answer = self._hooks.send(batch)
        except ToolscriptError as error:
            return list(batch), error
        for number in sorted(answer.results):
            self.report.took(answer.results[number])
        left = [line for number, line in enumerate(batch, 1) if number not in answer.results]
        incomplete = Unavailable("the service did not return a result for every document") if left else None
        return left, answer.stopped or incomplete

    def _wait(self, problem: ToolscriptError, tries: int) -> None:
        """Wait as long as the service requests, else with exponential backoff and jitter."""
        requested = problem.details.get("retry_after_seconds")
        default = min(MAX_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
        seconds = min(MAX_WAIT, float(requested)) if isinstance(requested, int | float) else default
        self._hooks.on_wait(problem, seconds)
        self._hooks.pause(seconds)

    def _show(self) -> None:
        self._hooks.on_progress(Progress(TASK, self.report.done, self._total))


def _line(document: FoundDocument) -> bytes:
    return json.dumps(document_to_json(document.document), ensure_ascii=False, separators=(",", ":")).encode()


def find_documents(
    request: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> dict[str, Any]:
    """Search documents; request and response have the field names of the API."""
    return _client(_settings(url, token), seconds).search(request)


def show_document(document_id: str, *, url: str | None, token: str | None, seconds: float) -> dict[str, Any]:
    return _client(_settings(url, token), seconds).document(document_id)


def remove_documents(
    ids: Sequence[str], *, url: str | None, token: str | None, seconds: float
) -> dict[str, list[str]]:
    client = _client(_settings(url, token), seconds)
    whole: dict[str, list[str]] = {"deleted": [], "missing": []}
    for index in range(0, len(ids), MAX_REMOVED_AT_ONCE):
        answer = client.remove(ids[index : index + MAX_REMOVED_AT_ONCE])
        for name, removed in whole.items():
            removed += [str(id_) for id_ in answer.get(name, [])]
    return whole


def put_documents(
    paths: Sequence[str],
    *,
    url: str | None,
    token: str | None,
    seconds: float,
    resume: str | None,
    on_progress: OnProgress,
    on_wait: OnWait,
) -> UploadReport:
    """Upload documents. With `resume`, continue an earlier upload and save the state of this one."""
    settings = _settings(url, token)
    client = _client(settings, seconds)
    file = None if resume is None else _state_file(resume, [client.place, *names_of(paths)])
    state = UploadState() if file is None else file.load()
    files = DocumentFiles(paths, state.place, state.began_at)
    hooks = UploadHooks(client.put, _discard_state if file is None else file.save, on_progress, on_wait)
    report = BulkUpload(hooks, state, files.count()).send(files.read())
    if file is not None:
        file.remove()
    return report


def _discard_state(_: UploadState) -> None: ...


def _state_file(resume: str, run: Sequence[str]) -> UploadStateFile:
    if resume != DEFAULT_STATE:
        return UploadStateFile(Path(resume), run)
    name = hashlib.sha256("\0".join(run).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return UploadStateFile(load_gateway_settings().data_folder / "sending" / f"{name}.json", run)


def _settings(url: str | None, token: str | None) -> ClientSettings:
    return load_client_settings({"service_url": url, "token": token})


def _client(settings: ClientSettings, seconds: float) -> DocumentsClient:
    return DocumentsClient(settings.address, token=settings.token, seconds=seconds)
