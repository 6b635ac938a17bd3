"""Bulk upload to a service that is busy, unavailable, or lost in the middle."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from toolscript.client.exchange import (
    SERVER,
    Address,
    Answer,
    Conversation,
    Pause,
    Pull,
    Request,
    Retries,
    Steps,
)
from toolscript.client.resource import Sync
from toolscript.client.resources.documents import Documents
from toolscript.core.errors import (
    InvalidRequest,
    SetupError,
    ToolscriptError,
    TooManyRequests,
    Unavailable,
    envelope_of,
)
from toolscript.core.values import Progress
from toolscript.documents.client.bulk_upload import (
    MAX_TRIES,
    MAX_WAIT,
    BulkUpload,
    UploadState,
    UploadStateFile,
)
from toolscript.documents.client.files import Found, FoundDocument, LeftOut
from toolscript.documents.model.document import Document, PutOutcome
from toolscript.documents.model.upload import Place, UploadReport

pytestmark = pytest.mark.requirement("DOC-006")

AWAY = Unavailable("no answer")


@dataclass
class Scene:
    """`troubles` come first, one per request: an error, or the number of documents with a result before one."""

    troubles: list[ToolscriptError | int] = field(default_factory=list)
    requests: list[list[str]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    states: list[UploadState] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    raised: ToolscriptError | None = None

    is_async = False

    def send(self, documents: Iterable[Found], total: int | None = None) -> UploadReport:
        address = Address("http", "127.0.0.1", 1, "", "127.0.0.1:1")
        conversation = Conversation(SERVER, address, Retries(MAX_TRIES - 1, MAX_WAIT))
        upload = BulkUpload(
            Documents[Sync](conversation, self),
            UploadState(),
            total,
            save_state=self.states.append,
            on_progress=self.progress.append,
        )
        return upload.send(documents)

    def run(self, steps: Steps[Any]) -> Any:
        """Run the steps of a client without a network and without waiting."""
        try:
            step = next(steps)
            while True:
                step = self._do(steps, step)
        except StopIteration as done:
            return done.value

    def _do(self, steps: Steps[Any], step: Request | Pause | Pull[Any]) -> Request | Pause | Pull[Any]:
        if isinstance(step, Pull):
            return steps.send(next(cast("Iterator[Any]", step.source), None))
        if isinstance(step, Pause):
            self.pauses.append(step.seconds)
            return next(steps)
        try:
            return steps.send(self._answer(step))
        except ToolscriptError as error:
            if error is not self.raised:
                raise
            self.raised = None
            return steps.throw(error)

    def _answer(self, request: Request) -> Answer:
        documents = [json.loads(line) for line in (request.body or b"").splitlines()]
        self.requests.append([document["id"] for document in documents])
        trouble = self.troubles.pop(0) if self.troubles else len(documents)
        if isinstance(trouble, ToolscriptError):
            self.raised = trouble
            raise trouble
        results = [{**self._keep(document), "line": n} for n, document in enumerate(documents[:trouble], 1)]
        stopped = {"error": envelope_of(AWAY)["error"]} if trouble < len(documents) else {}
        lines = [*results, {"counts": {}, **stopped}]
        return Answer(200, "\n".join(map(json.dumps, lines)).encode())

    def _keep(self, document: dict[str, str]) -> dict[str, object]:
        stored = self.kept.get(document["id"])
        self.kept[document["id"]] = document["text"]
        same = stored == document["text"]
        outcome = PutOutcome.CREATED if stored is None else PutOutcome.UNCHANGED if same else PutOutcome.UPDATED
        return {"id": document["id"], "state": outcome.value, "chunk_count": 1}


def found(count: int, size: int = 1) -> list[Found]:
    return [
        FoundDocument(Document(f"d{number}", "x" * size, {}), Place(0, (), number, number))
        for number in range(1, count + 1)
    ]


def test_a_request_holds_200_documents_or_a_mebibyte() -> None:
    scene = Scene()
    assert scene.send(found(450)).outcomes == {PutOutcome.CREATED: 450}
    assert [len(request) for request in scene.requests] == [200, 200, 50]
    scene = Scene()
    scene.send(found(5, 400_000))
    assert [len(request) for request in scene.requests] == [2, 2, 1]


def test_documents_are_read_when_they_are_sent_and_not_before() -> None:
    scene = Scene()

    def counted() -> Iterator[Found]:
        for number, one in enumerate(found(1000)):
            assert number - sum(len(request) for request in scene.requests) <= 200
            yield one

    scene.send(counted())


def test_the_state_is_saved_and_shown_after_every_acknowledged_request() -> None:
    scene = Scene()
    scene.send(found(450), 450)
    assert [state.place.line for state in scene.states if state.place] == [200, 400, 450]
    assert [(progress.done, progress.total) for progress in scene.progress][-1] == (450, 450)


def test_a_place_is_only_passed_when_all_before_it_was_acknowledged() -> None:
    bad = LeftOut("a.jsonl line 3", "is not JSON", Place(0, (), 3, 3), refused=True)
    last = LeftOut("b.pdf", "is none of", Place(1))
    scene = Scene()
    report = scene.send([*found(2), bad, last])
    assert [state.place for state in scene.states] == [Place(1)]
    assert (report.refused, report.skipped, report.done) == (1, 1, 4)
    assert report.named == [("a.jsonl line 3", "is not JSON"), ("b.pdf", "is none of")]


def test_an_unavailable_service_is_retried_with_backoff() -> None:
    scene = Scene([AWAY] * 5)
    assert scene.send(found(3)).outcomes == {PutOutcome.CREATED: 3}
    assert scene.requests == [["d1", "d2", "d3"]] * 6
    for pause, longest in zip(scene.pauses, (0.5, 1, 2, 4, 8), strict=True):
        assert longest / 2 <= pause <= longest


def test_an_upload_gives_up_on_an_unavailable_service_and_keeps_its_state() -> None:
    scene = Scene([200, *[AWAY] * 99])
    with pytest.raises(Unavailable, match="no answer"):
        scene.send(found(300))
    assert len(scene.requests) == 1 + MAX_TRIES
    assert [state.place.line for state in scene.states if state.place] == [200]


def test_an_upload_waits_as_long_as_the_service_requests_up_to_a_limit() -> None:
    def busy(seconds: float) -> TooManyRequests:
        return TooManyRequests("too many", details={"retry_after_seconds": seconds})

    scene = Scene([busy(17), busy(MAX_WAIT)])
    scene.send(found(1))
    assert scene.pauses == [17.0, MAX_WAIT]
    with pytest.raises(TooManyRequests):
        Scene([busy(MAX_WAIT + 1)]).send(found(1))


def test_only_documents_without_a_result_are_sent_again() -> None:
    scene = Scene([2, AWAY, 1])
    report = scene.send(found(5))
    assert scene.requests == [["d1", "d2", "d3", "d4", "d5"], ["d3", "d4", "d5"], ["d3", "d4", "d5"], ["d4", "d5"]]
    assert report.outcomes == {PutOutcome.CREATED: 5}


def test_an_upload_that_makes_progress_does_not_give_up() -> None:
    scene = Scene([1] * 20)
    assert scene.send(found(30)).outcomes == {PutOutcome.CREATED: 30}
    assert len(scene.pauses) == 20


@pytest.mark.parametrize("error", [InvalidRequest("no"), SetupError("not set up here")])
def test_a_permanent_error_ends_the_upload_at_once(error: ToolscriptError) -> None:
    scene = Scene([error])
    with pytest.raises(type(error)):
        scene.send(found(3))
    assert (len(scene.requests), scene.pauses) == (1, [])


class TestState:
    """The state in a file, to resume a killed upload."""

    STATE = UploadState(1234.5, Place(2, ("a", "b.jsonl"), 77, 3))

    def test_the_state_survives_the_round_trip_with_its_report(self, tmp_path: Path) -> None:
        file = UploadStateFile(tmp_path / "new" / "state.json", ["http://x", "docs"])
        assert file.load().place is None
        self.STATE.report.outcomes[PutOutcome.UPDATED] = 5
        self.STATE.report.refuse("caf\udce9", "no")
        file.save(self.STATE)
        loaded = file.load()
        assert (loaded.began_at, loaded.place) == (1234.5, self.STATE.place)
        assert loaded.report.outcomes == {PutOutcome.UPDATED: 5, PutOutcome.REFUSED: 1}
        assert (loaded.report.named, loaded.report.sent_before) == ([("caf\udce9", "no")], 6)
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["state.json"]
        file.remove()
        assert file.load().place is None

    def test_a_file_that_is_something_else_is_refused_and_not_touched(self, tmp_path: Path) -> None:
        path = tmp_path / "state.json"
        UploadStateFile(path, ["http://x", "docs"]).save(self.STATE)
        with pytest.raises(InvalidRequest, match="of another upload, or of another service"):
            UploadStateFile(path, ["http://y", "docs"]).load()
        good = json.loads(path.read_text("utf-8"))
        for content in ("", "my diary", "[]", '{"format": "other"}', json.dumps({**good, "place": {"path": "x"}})):
            path.write_text(content, "utf-8")
            with pytest.raises(InvalidRequest, match="is not a state file"):
                UploadStateFile(path, ["http://x", "docs"]).load()
            assert path.read_text("utf-8") == content

    def test_an_unwritable_state_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x", "utf-8")
        with pytest.raises(SetupError, match="cannot write"):
            UploadStateFile(tmp_path / "file" / "state.json", []).save(self.STATE)
