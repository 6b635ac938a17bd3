"""Sends valid and invalid requests to the whole HTTP API, and checks every response against OpenAPI.

By hand, in a database and under aliases of its own (made from those of the environment, and removed at the end):

    python -m tests.unit.server.http.openapi_examples --examples 1000 --seed 7
"""

import os
import sys

import schemathesis
from schemathesis import Response

from tests.conftest import fresh_database
from tests.support.random_requests import Api, Asked, main
from tests.unit.server.http.openapi_checks import a_sync_ends
from tests.unit.server.http.openapi_installation import (
    CHUNK_ID,
    DOCUMENT_IDS,
    ITEM_SOURCES,
    MANY,
    SKILL_IDS,
    SOURCE_ID,
    TENANT,
    Furnished,
    furnished_service,
)
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.settings.service import Settings

QUERIES = ("read a file", "schedule a meeting", "send_mail", "прогноз погоды", "天气预报")
KNOWN = {
    "numbers": range(1, MANY),
    "skills": SKILL_IDS,
    "queries": QUERIES,
    "documents": DOCUMENT_IDS,
    "sources": [SOURCE_ID],
    "chunks": [CHUNK_ID],
    "item_sources": ITEM_SOURCES,
    "tenants": [TENANT],
}
USES = {
    **{f"path.{name}": "numbers" for name in ("tool_id", "suggestion_id", "change_id", "job_id", "rule_id")},
    **dict.fromkeys(("path.skill_id", "body.into", "body.skill_ids[*]"), "skills"),
    **dict.fromkeys(("query.query", "body.query"), "queries"),
    "body.tool_id": "numbers",
    "path.document_id": "documents",
    "path.source_id": "sources",
    "path.chunk_id": "chunks",
    "path.name": "item_sources",
    "path.tenant_name": "tenants",
}


def ask_service(service: Furnished, examples: int, seed: int, *, edges: bool, only: str = "") -> dict[str, Asked]:
    schemathesis.check(a_sync_ends)
    auth = {"token": {"bearer": service.token}, "admin": {"bearer": service.admin}}
    return Api(service.url, auth, KNOWN, USES, _is_misfit, only).ask(examples, seed, edges=edges)


def _is_misfit(response: Response) -> bool:
    """Stored data or blank text may be the reason of a refusal, too."""
    return "problems" in response.json()["error"]["details"]


def _by_hand(examples: int, seed: int, only: str) -> dict[str, Asked]:
    engines = Settings()
    model = os.environ.get("TOOLSCRIPT_TEST_MODEL", engines.embedding_model)
    with fresh_database(engines, "template1") as database:
        upgrade(database)
        with furnished_service(engines, database, model) as service:
            return ask_service(service, examples, seed, edges=True, only=only)


if __name__ == "__main__":
    sys.exit(main(__doc__, _by_hand))
