"""The service answers as its OpenAPI says. More: tests/unit/server/http/openapi_examples.py."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.conftest import fresh_database
from tests.unit.server.http.openapi_checks import follow
from tests.unit.server.http.openapi_examples import ask_everything, report
from tests.unit.server.http.openapi_hostile import Hostile, hostile_requests
from tests.unit.server.http.openapi_installation import (
    CHUNK_ID,
    DOCUMENT_IDS,
    ITEM_SOURCES,
    SOURCE_ID,
    Furnished,
    furnished_service,
)
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("API-003")

SEED = 20261115
EXAMPLES = 12
KNOWN = {
    "source_id": SOURCE_ID,
    "chunk_id": CHUNK_ID,
    "skill_id": "calendar",
    **dict.fromkeys(("tool_id", "suggestion_id", "change_id", "job_id"), "1"),
    "document_id": DOCUMENT_IDS[0],
    "name": ITEM_SOURCES[0],
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
    asked = ask_everything(service, EXAMPLES, SEED, edges=False)
    assert {name: one.failures for name, one in asked.items() if one.failures} == {}, report(asked)
    operations = {f"{method.upper()} {path}" for path, found in openapi["paths"].items() for method in found}
    assert asked.keys() == operations
    assert [name for name, one in asked.items() if not one.reached] == []


def test_what_parsers_databases_and_encoders_choke_on_is_answered_as_documented(
    service: Furnished, openapi: dict[str, Any]
) -> None:
    headers = {"authorization": f"Bearer {service.token}"}
    with httpx2.Client(base_url=service.url, headers=headers, trust_env=False, verify=False) as client:
        wrong = [said for one in hostile_requests(openapi, KNOWN) if (said := _undocumented(client, one))]
    assert wrong == []


def _undocumented(client: httpx2.Client, asked: Hostile) -> str:
    """What was asked and answered; nothing where the answer is as it should be."""
    headers = {} if asked.body is None else {"content-type": asked.content_type}
    answer = client.request(asked.method, asked.url, content=asked.body, headers=headers)
    if answer.status_code == 202:
        follow(str(answer.url.join(answer.headers["location"])))
    expected = answer.status_code in asked.documented and answer.status_code < 500
    shaped = answer.status_code < 400 or answer.json()["error"].keys() == {"code", "message", "details"}
    return "" if expected and shaped else f"{str(asked)[:400]}: {answer.status_code} {answer.text[:200]}"
