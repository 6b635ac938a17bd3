"""Sends valid and invalid requests to the whole HTTP API, and checks every response against OpenAPI.

By hand, in a database and under aliases of its own (made from those of the environment, and removed at the end):

    python -m tests.unit.server.http.openapi_examples --examples 1000 --seed 7
"""

import argparse
import os
import random
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.engine import events, from_schema
from schemathesis.engine.run import PhaseName

from tests.conftest import fresh_database
from tests.unit.server.http.openapi_checks import a_sync_ends, is_a_fault
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
HOSTILE = (
    "\0",
    "a\0b",
    "' OR 1=1 --",
    "%00",
    "\u202e",
    "\U0001f600" * 20,
    "\x1b[2J",
    "x" * 1001,
    "\ufeff",
    "../..",
)
NUMBERS_IN_PATHS = ("tool_id", "suggestion_id", "change_id", "job_id")
# Existing values, by kind.
KNOWN: dict[str, list[Any]] = {
    "numbers": list(range(1, MANY)),
    "skills": list(SKILL_IDS),
    "queries": list(QUERIES),
    "documents": list(DOCUMENT_IDS),
    "sources": [SOURCE_ID],
    "chunks": [CHUNK_ID],
    "item_sources": list(ITEM_SOURCES),
    "tenants": [TENANT],
}


@dataclass
class Asked:
    """Requests to one operation, and its responses: random ones, and those at the edges of its schema."""

    examples: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        """Whether a request succeeded, or had no effect left to have."""
        return any(200 <= status < 300 or status == 409 for status in self.statuses)


def ask_everything(service: Furnished, examples: int, seed: int, *, edges: bool) -> dict[str, Asked]:
    """Test all operations; with `edges` also at the edges of their schemas, which takes longer."""
    config = schemathesis.Config.from_dict(_configuration(service, examples, seed, edges=edges))
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json", config=config)
    schemathesis.check(a_sync_ends)
    schema.hook("filter_failure")(is_a_fault)
    requests: dict[str, Asked] = defaultdict(Asked)
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _count(requests, event)
        elif isinstance(event, events.NonFatalError):
            requests[event.label].failures[event.info.title] = str(event.value)
        elif isinstance(event, events.FatalError):
            raise event.exception
    return dict(requests)


def _configuration(service: Furnished, examples: int, seed: int, *, edges: bool) -> dict[str, Any]:
    """Half of the names and numbers refer to existing things."""
    half = {name: {"dictionary": name, "probability": 0.5} for name in KNOWN}
    return {
        "seed": seed,
        "auth": {"openapi": {"token": {"bearer": service.token}, "admin": {"bearer": service.admin}}},
        "cache": {"enabled": False},
        "output": {"sanitization": {"enabled": False}},
        "dictionaries": {
            **{name: {"values": values} for name, values in KNOWN.items()},
            "hostile": {"values": list(HOSTILE)},
        },
        "parameters": {
            **{f"path.{name}": half["numbers"] for name in NUMBERS_IN_PATHS},
            **dict.fromkeys(("path.skill_id", "body.into", "body.skill_ids[*]"), half["skills"]),
            **dict.fromkeys(("query.query", "body.query"), half["queries"]),
            "path.document_id": half["documents"],
            "path.source_id": half["sources"],
            "path.chunk_id": half["chunks"],
            "path.name": half["item_sources"],
            "path.tenant_name": half["tenants"],
        },
        "generation": {
            "max-examples": examples,
            "database": "none",
            "dictionaries": {"string": {"dictionary": "hostile", "probability": 0.05}},
        },
        "phases": {
            "coverage": {"enabled": edges},
            "stateful": {"enabled": False},
            # Responses influence the generated data, which would end generation early.
            "fuzzing": {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}},
        },
        "continue-on-failure": True,
    }


def _count(asked: dict[str, Asked], event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    for case_id, node in recorder.cases.items():
        item, answer = asked[node.value.operation.label], recorder.find_response(case_id=case_id)
        item.examples += event.phase is PhaseName.FUZZING
        if answer is not None:
            item.statuses[answer.status_code] += 1
        for check in recorder.checks.get(case_id, ()):
            if check.failure_info is not None:
                failure = check.failure_info.failure
                message = answer.content[:300] if answer is not None else b"nothing"
                what = f"{check.name}: {failure.title}: {failure.message[:300]}"
                item.failures.setdefault(what, f"{check.failure_info.code_sample}\n{message!r}")


def report(asked: dict[str, Asked]) -> str:
    lines = []
    for operation, item in sorted(asked.items()):
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(item.statuses.items()))
        lines.append(f"{operation}: {item.examples:,} examples; {statuses}; {len(item.failures)} failures")
        lines += [f"    {what}\n{how}" for what, how in item.failures.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1000, help="at random, for each operation")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    engines, started = Settings(), time.monotonic()
    model = os.environ.get("TOOLSCRIPT_TEST_MODEL", engines.embedding_model)
    with fresh_database(engines, "template1") as database:
        upgrade(database)
        with furnished_service(engines, database, model) as service:
            requests = ask_everything(service, arguments.examples, arguments.seed, edges=True)
    answers = sum(item.statuses.total() for item in requests.values())
    failures = sum(len(item.failures) for item in requests.values())
    took = time.monotonic() - started
    summary = f"{len(requests)} operations, {answers:,} answers, {failures} failures in {took:,.0f} s"
    sys.stdout.write(f"{report(requests)}\nseed {arguments.seed}: {summary}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
