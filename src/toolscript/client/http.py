"""Tool search in a running service, over HTTP."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from toolscript.client.settings import load_client_settings
from toolscript.core.http_client import Answer, Peer, address_of, granted, not_one
from toolscript.core.text import readable
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.json import answer_from_json, skills_from_json

T = TypeVar("T")

SERVICE = Peer(
    "service",
    "http://127.0.0.1:8080",
    "`toolscript serve` starts one; --url or TOOLSCRIPT_SERVICE_URL says where one runs",
)
SEARCH = "/api/v1/search"
DEGRADED_HEADER = "x-toolscript-degraded"


class ServiceClient:
    """What is asked has the API's names. Answers come read, and as the JSON they were read from."""

    def __init__(self, url: str, *, token: str = "", seconds: float = 30.0) -> None:
        self._address = address_of(url, SERVICE)
        self._token = token
        self._seconds = seconds

    def search(self, asked: Mapping[str, object]) -> tuple[ToolAnswer, Any]:
        return self._read(self._ask("POST", SEARCH, _readable(asked)), lambda data, _: answer_from_json(data))

    def skills(self, asked: Mapping[str, object]) -> tuple[SkillAnswer, Any]:
        answer = self._ask("GET", f"{SEARCH}/skills?{urlencode(_readable(asked))}")
        return self._read(answer, lambda data, degraded: SkillAnswer(skills_from_json(data), degraded))

    def _ask(self, method: str, path: str, body: object = None) -> Answer:
        return granted(SERVICE, self._address, method, path, body, token=self._token, seconds=self._seconds)

    def _read(self, answer: Answer, read: Callable[[Any, tuple[str, ...]], T]) -> tuple[T, Any]:
        degraded = tuple(part for part in answer.headers.get(DEGRADED_HEADER, "").split(",") if part)
        try:
            data = json.loads(answer.body)
            return read(data, degraded), data
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise not_one(SERVICE, self._address) from error


def _readable(data: Mapping[str, object]) -> dict[str, object]:
    """A command line can hold what no text can."""
    return {name: readable(value) if isinstance(value, str) else value for name, value in data.items()}


def find_tools(
    asked: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> tuple[ToolAnswer, Any]:
    """The answer, and the JSON it came as."""
    return _client(url, token, seconds).search(asked)


def find_skills(
    asked: Mapping[str, object], *, url: str | None, token: str | None, seconds: float
) -> tuple[SkillAnswer, Any]:
    return _client(url, token, seconds).skills(asked)


def _client(url: str | None, token: str | None, seconds: float) -> ServiceClient:
    settings = load_client_settings({"service_url": url, "token": token})
    return ServiceClient(settings.address, token=settings.token, seconds=seconds)
