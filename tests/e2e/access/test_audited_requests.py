"""Every operation that changes something leaves exactly one entry in the audit, by the one who sent it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.conftest import fresh_database, fresh_installation
from tests.e2e.access.audited_state import ADMIN, MANAGER, WRITER, State, prepared
from tests.e2e.commands import WAIT_SECONDS, serving
from tests.support.audit_entries import count_of
from toolscript.core.settings.service import Settings
from toolscript.tools.http.access import ADMIN_ACTOR

pytestmark = pytest.mark.requirement("AP-005")
API = "/api/v1"
# Changes that are sent at once; divides their counts.
AT_ONCE = 4
DOCUMENT = {"id": "letter", "text": "A letter about a harbour."}


@dataclass(frozen=True)
class Request:
    """`by`: whose token it is sent with. `action`: the one of its entry."""

    by: str
    path: str
    action: str
    body: Any = None


def requests_of(state: State) -> dict[str, Request]:
    items, changes, asked = state.items, state.changes, state.suggestions
    skill = {"id": "sea", "name": "Sea"}
    rule = {"kind": "never", "words": "invoice", "tool_id": items[0]}
    one = {"documents": [DOCUMENT]}
    return {
        "POST /api/v1/skills": Request("admin", f"{API}/skills", "skill.add", skill),
        "PUT /api/v1/skills/{skill_id}": Request("admin", f"{API}/skills/sea", "skill.change", {"name": "Seas"}),
        "PATCH /api/v1/skills/{skill_id}": Request(
            "admin", f"{API}/skills/sea", "skill.deactivate", {"is_active": False}
        ),
        "PUT /api/v1/tools/{tool_id}/skills": Request(
            MANAGER, f"{API}/tools/{items[1]}/skills", "item.assign", {"skill_ids": ["mail"]}
        ),
        "DELETE /api/v1/tools/{tool_id}/skills": Request(
            MANAGER, f"{API}/tools/{items[1]}/skills", "item.release"
        ),
        "POST /api/v1/suggestions/{suggestion_id}/approve": Request(
            "admin", f"{API}/suggestions/{asked['Post']}/approve", "suggestion.approve", {}
        ),
        "POST /api/v1/suggestions/{suggestion_id}/undo": Request(
            "admin", f"{API}/suggestions/{asked['Post']}/undo", "suggestion.undo", {}
        ),
        "POST /api/v1/suggestions/{suggestion_id}/reject": Request(
            "admin", f"{API}/suggestions/{asked['Weather']}/reject", "suggestion.reject", {}
        ),
        "POST /api/v1/suggestions/{suggestion_id}/merge": Request(
            "admin", f"{API}/suggestions/{asked['Trains']}/merge", "suggestion.merge", {"into": "maps"}
        ),
        "POST /api/v1/curation": Request(MANAGER, f"{API}/curation", "curation.add", rule),
        "PATCH /api/v1/curation/{rule_id}": Request(
            MANAGER, f"{API}/curation/{{latest}}", "curation.change", {"words": "bill"}
        ),
        "DELETE /api/v1/curation/{rule_id}": Request(MANAGER, f"{API}/curation/{{latest}}", "curation.remove"),
        "POST /api/v1/changes/{change_id}/approve": Request(
            MANAGER, f"{API}/changes/{changes[0]}/approve", "change.approve", {}
        ),
        "POST /api/v1/changes/{change_id}/reject": Request(
            MANAGER, f"{API}/changes/{changes[1]}/reject", "change.reject", {}
        ),
        "DELETE /api/v1/tools/{tool_id}": Request(MANAGER, f"{API}/tools/{items[2]}", "tool.remove"),
        "POST /api/v1/jobs": Request(
            MANAGER, f"{API}/jobs", "items.import", {"source": "bills", "items": [{"server": "b", "name": "pay"}]}
        ),
        "DELETE /api/v1/sources/{name}": Request("admin", f"{API}/sources/bills", "source.remove"),
        "PUT /api/v1/documents": Request(WRITER, f"{API}/documents", "documents.put", one),
        "POST /api/v1/documents/delete": Request(
            WRITER, f"{API}/documents/delete", "documents.delete", {"ids": ["letter", "absent"]}
        ),
        "PUT /documents": Request(WRITER, "/documents", "documents.put", one),
        "DELETE /api/v1/documents/{document_id}": Request(WRITER, f"{API}/documents/letter", "documents.delete"),
        "PUT again": Request(WRITER, f"{API}/documents", "documents.put", one),
        "DELETE /documents": Request(WRITER, "/documents", "documents.delete", {"ids": ["letter"]}),
        "PUT once more": Request(WRITER, f"{API}/documents", "documents.put", one),
        "DELETE /documents/{document_id}": Request(WRITER, "/documents/letter", "documents.delete"),
        "POST of servers": Request("admin", f"{API}/jobs", "servers.sync", {"servers": ["notes"]}),
    }


@dataclass
class Service:
    state: State
    http: httpx.Client
    latest: int = 0

    def entries(self) -> list[dict[str, Any]]:
        answer = self.http.get(f"{API}/audit?limit=200", headers={"Authorization": f"Bearer {ADMIN}"})
        return list(reversed(answer.json()["results"]))

    def entries_of(self, operation: str, request: Request) -> list[dict[str, Any]]:
        """Send a request, and return the entries that it left."""
        before = len(self.entries())
        self.send(operation, request)
        return self.entries()[before:]

    def send(self, operation: str, request: Request) -> httpx.Response:
        token = {"admin": ADMIN, MANAGER: self.state.manager, WRITER: self.state.writer}[request.by]
        answer = self.http.request(
            operation.partition(" ")[0],
            request.path.format(latest=self.latest),
            json=request.body,
            headers={"Authorization": f"Bearer {token}"},
        )
        assert answer.is_success, (operation, answer.text)
        if operation == "POST /api/v1/curation":
            self.latest = answer.json()["id"]
        if answer.status_code == 202:
            self.until_ended(answer.headers["location"])
        return answer

    def until_ended(self, job: str) -> None:
        ends_at = time.monotonic() + WAIT_SECONDS
        admin = {"Authorization": f"Bearer {ADMIN}"}
        while self.http.get(job, headers=admin).json()["state"] in ("queued", "running"):
            assert time.monotonic() < ends_at
            time.sleep(0.05)


@pytest.fixture(scope="module")
def service(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with fresh_database(engines, migrated_database) as url, fresh_installation(engines, url, model_folder) as mine:
        yield from serving_state(prepared(mine, tmp_path_factory.mktemp("audited")))


def serving_state(state: State) -> Iterator[Service]:
    with serving(state.environment) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        yield Service(state, http)


def test_each_operation_that_changes_something_leaves_one_entry_with_its_actor_and_count(service: Service) -> None:
    requests = requests_of(service.state)
    operations = [
        f"{method.upper()} {path}"
        for path, operations in service.http.get("/openapi.json").json()["paths"].items()
        for method in operations
        if method != "get" and "search" not in path
    ]
    assert set(operations) - set(requests) == set()
    left = {operation: service.entries_of(operation, request) for operation, request in requests.items()}
    who_and_what = {
        operation: [(entry["action"], entry["actor"]) for entry in entries] for operation, entries in left.items()
    }
    assert who_and_what == {operation: [(request.action, request.by)] for operation, request in requests.items()}
    nothing = {operation for operation, (entry,) in left.items() if not entry["count"]}
    assert nothing == {"POST of servers"}


def test_what_changes_nothing_leaves_no_entry(service: Service) -> None:
    before = service.entries()
    service.send("POST", Request(WRITER, f"{API}/documents/delete", "", {"ids": ["absent"]}))
    service.send("DELETE", Request(MANAGER, f"{API}/tools/{service.state.items[2]}", ""))
    assert service.entries() == before


def test_a_manager_sees_no_entry_about_documents(service: Service) -> None:
    manager = {"Authorization": f"Bearer {service.state.manager}"}
    entries = service.http.get(f"{API}/audit?limit=200", headers=manager).json()["results"]
    assert {entry["action"].partition(".")[0] for entry in entries}.isdisjoint({"documents", "tenant"})


def test_two_hundred_changes_are_two_hundred_entries(service: Service) -> None:
    change_many(service, 200)


@pytest.mark.nightly
def test_ten_thousand_changes_are_ten_thousand_entries(service: Service) -> None:
    change_many(service, 10_000)


def change_many(service: Service, count: int) -> None:
    """Assign and release items by turns, several at once, as an administrator, and expect an entry each."""
    before = count_of(service.state.environment, ADMIN_ACTOR)
    items = service.state.items[-AT_ONCE:]

    def change(item: int) -> None:
        path = f"{API}/tools/{item}/skills"
        for _ in range(count // AT_ONCE // 2):
            service.send("PUT", Request("admin", path, "item.assign", {"skill_ids": ["mail"]}))
            service.send("DELETE", Request("admin", path, "item.release"))

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(change, items))
    assert count_of(service.state.environment, ADMIN_ACTOR) - before == count
