"""Responses match the OpenAPI schema. More: tests/unit/server/http/openapi_examples.py."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.conftest import fresh_database
from tests.support.random_requests import failures_of, report
from tests.unit.server.http.openapi_checks import follow
from tests.unit.server.http.openapi_examples import ask_service
from tests.unit.server.http.openapi_hostile import Hostile, hostile_requests
from tests.unit.server.http.openapi_installation import (
    CHUNK_ID,
    DOCUMENT_IDS,
    ITEM_SOURCES,
    SOURCE_ID,
    TENANT,
    Furnished,
    furnished_service,
)
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("API-003")

SEED = 20261118
EXAMPLES, MANY_EXAMPLES = 8, 1_000
KNOWN = {
    "source_id": SOURCE_ID,
    "chunk_id": CHUNK_ID,
    "skill_id": "calendar",
    **dict.fromkeys(("tool_id", "suggestion_id", "change_id", "job_id", "rule_id"), "1"),
    "document_id": DOCUMENT_IDS[0],
    "name": ITEM_SOURCES[0],
    "tenant_name": TENANT,
}


@pytest.fixture(scope="module")
def service(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Furnished]:
    with (
        fresh_database(engines, migrated_database) as database,
        furnished_service(engines, database, model_folder) as furnished,
    ):
        yield furnished


@pytest.fixture(scope="module")
def openapi(service: Furnished) -> dict[str, Any]:
    return dict(httpx2.get(f"{service.url}/openapi.json", trust_env=False, verify=False).json())


def test_every_answer_of_every_operation_is_as_documented(service: Furnished, openapi: dict[str, Any]) -> None:
    requests = ask_service(service, EXAMPLES, SEED, edges=False)
    assert failures_of(requests) == {}, report(requests)
    operations = {f"{method.upper()} {path}" for path, result in openapi["paths"].items() for method in result}
    assert requests.keys() == operations
    assert [name for name, item in requests.items() if not item.reached] == []


@pytest.mark.nightly
@pytest.mark.requirement("AP-001")
def test_a_thousand_requests_to_each_operation_are_answered_as_documented(service: Furnished) -> None:
    requests = ask_service(service, MANY_EXAMPLES, SEED, edges=True)
    assert failures_of(requests) == {}, report(requests)


def test_hostile_values_get_documented_responses(service: Furnished, openapi: dict[str, Any]) -> None:
    with httpx2.Client(base_url=service.url, trust_env=False, verify=False) as client:
        wrong = [
            message
            for hostile_request in hostile_requests(openapi, KNOWN)
            if (message := _undocumented(client, service, hostile_request))
        ]
    assert wrong == []


def _undocumented(client: httpx2.Client, service: Furnished, asked: Hostile) -> str:
    """Return request and response if the response is not as documented; empty otherwise."""
    headers = {"authorization": f"Bearer {service.admin if asked.as_admin else service.token}"}
    if asked.body is not None:
        headers["content-type"] = asked.content_type
    answer = client.request(asked.method, asked.url, content=asked.body, headers=headers)
    if answer.status_code == 202:
        follow(str(answer.url.join(answer.headers["location"])))
    expected = answer.status_code in asked.documented and answer.status_code < 500
    shaped = answer.status_code < 400 or answer.json()["error"].keys() == {"code", "message", "details"}
    return "" if expected and shaped else f"{str(asked)[:400]}: {answer.status_code} {answer.text[:200]}"
