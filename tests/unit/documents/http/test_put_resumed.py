"""`toolscript documents put` after a kill, and against a busy service."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e import commands
from tests.support.reserved_ports import reserved_port
from tests.unit.documents.http.builders import LIMITED, Parts, app_of
from tests.unit.documents.http.serving import on_a_thread
from toolscript.client import http as client_http
from toolscript.client.clients import Client
from toolscript.core.values import silent
from toolscript.documents.client.bulk_upload import MAX_TRIES, MAX_WAIT, BulkUpload, UploadState
from toolscript.documents.client.files import DocumentFiles
from toolscript.documents.model.document import Document, PutOutcome
from toolscript.documents.model.upload import UploadReport

pytestmark = [pytest.mark.requirement("DOC-006"), pytest.mark.slow]

SOON = 60.0
MANY = 1_000


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    rows = ({"id": f"d{number}", "text": f"Number {number}."} for number in range(MANY))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize("state", ["state.json", "default"])
def test_a_killed_upload_resumes_where_it_stopped(
    parts: Parts, documents: Path, tmp_path: Path, state: str
) -> None:
    received, halfway, resume = list[str](), threading.Event(), threading.Event()

    async def slowly(batch: Sequence[Document]) -> None:
        received.extend(document.id for document in batch)
        if len(received) > MANY // 2:
            halfway.set()
            await asyncio.to_thread(resume.wait, SOON)

    parts.service.before, parts.service.forgets = slowly, True
    with on_a_thread(app_of(parts.routes())) as url:
        variables = {"TOOLSCRIPT_SERVICE_URL": url, "TOOLSCRIPT_TOKEN": "token-of-acme", "HOME": str(tmp_path)}
        arguments = ("documents", "put", str(documents), "--resume", state, "--json")
        first = subprocess.Popen(
            commands.command(*arguments),
            env=commands.environment(variables),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
        )
        assert halfway.wait(SOON)
        os.kill(first.pid, signal.SIGKILL)
        first.wait(SOON)
        resume.set()
        before, received[:] = set(received), []
        second = commands.run_in(commands.environment(variables), tmp_path, *arguments)
    report = json.loads(second.stdout)
    acknowledged = {f"d{number}" for number in range(400)}
    assert (report["sent_before"], report["created"]) == (len(acknowledged), MANY)
    assert before | set(received) == {f"d{number}" for number in range(MANY)}
    assert acknowledged.isdisjoint(received), "what was acknowledged was sent again"
    assert not list(tmp_path.rglob("*state*.json")), "a run that is over leaves no state"


def upload(url: str, token: str, documents: Path) -> UploadReport:
    with Client(url, token=token, retries=MAX_TRIES - 1, max_wait=MAX_WAIT) as client:
        bulk = BulkUpload(client.documents, UploadState(), MANY, save_state=lambda _: None, on_progress=silent)
        return bulk.send(DocumentFiles([str(documents)]).read())


def test_an_upload_over_its_rate_limit_waits_as_long_as_the_service_requests(
    parts: Parts, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000_000.0]
    waits = list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    parts.service.forgets = True
    parts.now = lambda: clock[0]
    monkeypatch.setattr(client_http, "sleep", wait)
    with on_a_thread(app_of(parts.routes())) as url:
        report = upload(url, "token-of-limited", documents)
    assert report.outcomes == {PutOutcome.CREATED: MANY}
    assert LIMITED.plan.requests_per_minute == 3, "and five requests are needed"
    assert waits == [60 - 1_000_000 % 60]


def test_a_service_that_comes_back_is_sent_everything(
    parts: Parts, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.service.forgets = True
    with reserved_port() as port, ExitStack() as stack:

        def come_back(_: float) -> None:
            stack.enter_context(on_a_thread(app_of(parts.routes()), port))

        monkeypatch.setattr(client_http, "sleep", come_back)
        report = upload(f"http://127.0.0.1:{port}", "token-of-acme", documents)
    assert report.outcomes == {PutOutcome.CREATED: MANY}
