"""Asks a service that runs elsewhere. Kept light: whoever asks over HTTP needs no engine and no model."""

from collections.abc import Mapping
from typing import Any

from toolscript.adapters.http_clients.service import ServiceClient
from toolscript.model.results import SkillAnswer, ToolAnswer
from toolscript.settings.client import load_client_settings


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
