"""Asks a service that runs elsewhere for documents, and sends it some. Kept light, as all that asks over HTTP."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolscript.adapters.document_files import DocumentFiles, names_of
from toolscript.adapters.http_clients.documents import DocumentsClient
from toolscript.adapters.sending_state import SendingFile, SendingState
from toolscript.model.document_sending import SendingReport
from toolscript.model.progress import OnProgress
from toolscript.service.documents_sending import OnWait, Sending, Ways
from toolscript.settings.client import ClientSettings, load_client_settings
from toolscript.settings.gateway import load_gateway_settings

# In place of a file's name: one of the installation's own.
DEFAULT_STATE = "default"
MOST_REMOVED_AT_ONCE = 1_000


def find_documents(
    asked: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> dict[str, Any]:
    """What is asked and answered has the names of the API."""
    return _client(_settings(url, token), seconds).search(asked)


def show_document(document_id: str, *, url: str | None, token: str | None, seconds: float) -> dict[str, Any]:
    return _client(_settings(url, token), seconds).document(document_id)


def remove_documents(
    ids: Sequence[str], *, url: str | None, token: str | None, seconds: float
) -> dict[str, list[str]]:
    client = _client(_settings(url, token), seconds)
    whole: dict[str, list[str]] = {"deleted": [], "missing": []}
    for at in range(0, len(ids), MOST_REMOVED_AT_ONCE):
        answer = client.remove(ids[at : at + MOST_REMOVED_AT_ONCE])
        for name, found in whole.items():
            found += [str(one) for one in answer.get(name, [])]
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
) -> SendingReport:
    """With `resume` it goes on where an earlier one was ended, and remembers how far it has come."""
    settings = _settings(url, token)
    client = _client(settings, seconds)
    file = None if resume is None else _state_file(resume, [client.place, *names_of(paths)])
    state = SendingState() if file is None else file.load()
    files = DocumentFiles(paths, state.place, state.began_at)
    ways = Ways(client.put, _forget if file is None else file.save, on_progress, on_wait)
    report = Sending(ways, state, files.count()).send(files.read())
    if file is not None:
        file.remove()
    return report


def _forget(_: SendingState) -> None: ...


def _state_file(resume: str, run: Sequence[str]) -> SendingFile:
    if resume != DEFAULT_STATE:
        return SendingFile(Path(resume), run)
    name = hashlib.sha256("\0".join(run).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return SendingFile(load_gateway_settings().data_folder / "sending" / f"{name}.json", run)


def _settings(url: str | None, token: str | None) -> ClientSettings:
    return load_client_settings({"service_url": url, "token": token})


def _client(settings: ClientSettings, seconds: float) -> DocumentsClient:
    return DocumentsClient(settings.address, token=settings.token, seconds=seconds)
