"""HTTP client for a tenant's documents in a running service."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from toolscript.client.http import SERVICE
from toolscript.core.errors import ToolscriptError, Unavailable
from toolscript.core.http_client import Answer, address_of, request_or_raise, unexpected_peer
from toolscript.core.text import readable
from toolscript.documents.model.document import PutOutcome, PutResult

DOCUMENTS = "/api/v1/documents"
SEARCH, DELETE = f"{DOCUMENTS}/search", f"{DOCUMENTS}/delete"
LINES = "application/x-ndjson"

Json = dict[str, Any]


@dataclass(frozen=True)
class PutAnswer:
    """Results by line number, from 1; `stopped` is the reason if not all lines have one."""

    results: Mapping[int, PutResult]
    stopped: ToolscriptError | None = None


class DocumentsClient:
    """Requests and responses have the field names of the API."""

    def __init__(self, url: str, *, token: str, seconds: float = 30.0) -> None:
        self._address = address_of(url, SERVICE)
        self._token = token
        self._seconds = seconds

    @property
    def place(self) -> str:
        """Return the URL of the service without credentials."""
        return f"{self._address.scheme}://{self._address.place}{self._address.path}"

    def search(self, request: Mapping[str, object]) -> Json:
        return self._object(self._request("POST", SEARCH, dict(request)), "results")

    def document(self, document_id: str) -> Json:
        return self._object(self._request("GET", _path(document_id)), "text")

    def remove(self, ids: Sequence[str]) -> Json:
        return self._object(self._request("POST", DELETE, {"ids": [readable(id_) for id_ in ids]}), "deleted")

    def put(self, lines: Sequence[bytes]) -> PutAnswer:
        """Put documents; each line is one as JSON."""
        answer = self._request("PUT", DOCUMENTS, b"\n".join(lines), content_type=LINES)
        try:
            *results, last = [json.loads(line) for line in answer.body.splitlines()]
            error = last.get("error")
            return PutAnswer(
                {int(result["line"]): _result(result) for result in results},
                None if error is None else Unavailable(str(error["message"]), hint=_hint(error)),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise unexpected_peer(SERVICE, self._address) from problem

    def _request(self, method: str, path: str, body: object = None, **how: Any) -> Answer:
        return request_or_raise(
            SERVICE, self._address, method, path, body, token=self._token, seconds=self._seconds, **how
        )

    def _object(self, answer: Answer, expected: str) -> Json:
        try:
            data = json.loads(answer.body)
            if isinstance(data, dict) and expected in data:
                return data
        except (ValueError, RecursionError):
            pass
        raise unexpected_peer(SERVICE, self._address)


def _path(document_id: str) -> str:
    """Return the path with the id as exactly one step, also through proxies that normalise `.` and `..`."""
    step = quote(readable(document_id), safe="")
    return f"{DOCUMENTS}/{step.replace('.', '%2E') if step in ('.', '..') else step}"


def _result(data: Json) -> PutResult:
    return PutResult(
        str(data["id"] or ""), PutOutcome(data["state"]), int(data["chunks"]), str(data.get("error", ""))
    )


def _hint(error: Json) -> str:
    return str(dict(error.get("details", {})).get("hint", ""))
