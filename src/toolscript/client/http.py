"""Tool search in a running service, over HTTP."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from toolscript.client.settings import load_client_settings
from toolscript.core.http_client import Answer, Peer, address_of, request_or_raise, unexpected_peer
from toolscript.core.text import readable
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.json import answer_from_json, skills_from_json

T = TypeVar("T")

SERVICE = Peer(
    "service",
    "http://127.0.0.1:8080",
    "`toolscript serve` starts one; --url or TOOLSCRIPT_SERVICE_URL is the address of one",
)
SEARCH = "/api/v1/search"
DEGRADED_HEADER = "x-toolscript-degraded"


class ServiceClient:
    """Requests have the field names of the API. Answers are returned parsed, and as JSON."""

    def __init__(self, url: str, *, token: str = "", seconds: float = 30.0) -> None:
        self._address = address_of(url, SERVICE)
        self._token = token
        self._seconds = seconds

    def search(self, request: Mapping[str, object]) -> tuple[ToolAnswer, Any]:
        return self._read(
            self._request("POST", SEARCH, _readable(request)), lambda data, _: answer_from_json(data)
        )

    def skills(self, request: Mapping[str, object]) -> tuple[SkillAnswer, Any]:
        answer = self._request("GET", f"{SEARCH}/skills?{urlencode(_readable(request))}")
        return self._read(answer, lambda data, degraded: SkillAnswer(skills_from_json(data), degraded))

    def _request(self, method: str, path: str, body: object = None) -> Answer:
        return request_or_raise(
            SERVICE, self._address, method, path, body, token=self._token, seconds=self._seconds
        )

    def _read(self, answer: Answer, read: Callable[[Any, tuple[str, ...]], T]) -> tuple[T, Any]:
        degraded = tuple(part for part in answer.headers.get(DEGRADED_HEADER, "").split(",") if part)
        try:
            data = json.loads(answer.body)
            return read(data, degraded), data
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise unexpected_peer(SERVICE, self._address) from error


def _readable(data: Mapping[str, object]) -> dict[str, object]:
    """Return the request with valid text: a command line can hold invalid Unicode."""
    return {name: readable(value) if isinstance(value, str) else value for name, value in data.items()}


def find_tools(
    request: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> tuple[ToolAnswer, Any]:
    """Return the answer, parsed and as JSON."""
    return _client(url, token, seconds).search(request)


def find_skills(
    request: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> tuple[SkillAnswer, Any]:
    return _client(url, token, seconds).skills(request)


def _client(url: str | None, token: str | None, seconds: float) -> ServiceClient:
    settings = load_client_settings({"service_url": url, "token": token})
    return ServiceClient(settings.address, token=settings.token, seconds=seconds)
