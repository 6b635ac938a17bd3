"""Tool search in a running service, over HTTP."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from toolscript.client.settings import load_client_settings
from toolscript.core.http_client import Peer, address_of, request_or_raise, unexpected_peer
from toolscript.core.text import readable
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.json import answer_from_json, skill_answer_from_json

T = TypeVar("T")

SERVICE = Peer(
    "service",
    "http://127.0.0.1:8080",
    "`toolscript serve` starts one; --url or TOOLSCRIPT_SERVICE_URL is the address of one",
)
TOOL_SEARCH, SKILL_SEARCH = "/api/v1/tools/search", "/api/v1/skills/search"


class ServiceClient:
    """Requests have the field names of the API. Answers are returned parsed, and as JSON."""

    def __init__(self, url: str, *, token: str = "", seconds: float = 30.0) -> None:
        self._address = address_of(url, SERVICE)
        self._token = token
        self._seconds = seconds

    def search(self, request: Mapping[str, object]) -> tuple[ToolAnswer, Any]:
        body = _readable(request)
        query = str(body.get("query", ""))
        return self._post(TOOL_SEARCH, body, lambda data: answer_from_json(data, query))

    def skills(self, request: Mapping[str, object]) -> tuple[SkillAnswer, Any]:
        return self._post(SKILL_SEARCH, _readable(request), skill_answer_from_json)

    def _post(self, path: str, body: object, read: Callable[[Any], T]) -> tuple[T, Any]:
        answer = request_or_raise(
            SERVICE, self._address, "POST", path, body, token=self._token, seconds=self._seconds
        )
        try:
            data = json.loads(answer.body)
            return read(data), data
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
