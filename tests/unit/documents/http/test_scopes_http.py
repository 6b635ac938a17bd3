"""Reading documents takes one scope and writing them another, on every route that there is."""

from dataclasses import replace

import httpx2
import pytest

from tests.unit.documents.http.operations import Operation, for_callers
from tests.unit.documents.http.scenes import Parts, app_of
from toolscript.core.auth.model import Caller, Tenant
from toolscript.core.web.auth import callers_of
from toolscript.documents.model.document import Document
from toolscript.testing import MemoryCallers, MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-004", "KN-005")

ACME = Tenant("acme")
TOKENS = {
    "all": Caller(ACME),
    "reads": Caller(ACME, scopes=frozenset({"documents:read"})),
    "writes": Caller(ACME, scopes=frozenset({"documents:write"})),
    "neither": Caller(ACME, scopes=frozenset({"knowledge:read"})),
}


@pytest.mark.parametrize(
    ("token", "may"),
    [("all", {"read", "write"}), ("reads", {"read"}), ("writes", {"write"}), ("neither", set[str]())],
)
async def test_a_token_may_do_what_its_scopes_say(parts: Parts, token: str, may: set[str]) -> None:
    await parts.desk.put(Caller(ACME), [Document("doc-1", "Whales are mammals.", {})])
    app = app_of(replace(parts.routes(), caller=callers_of(MemoryCallers(TOKENS), MemoryRequestBudget())))
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        for one in sorted(for_callers(app.openapi()), key=lambda one: one.method == "DELETE"):
            headers = {**one.headers, "authorization": f"Bearer {token}"}
            answer = await client.request(one.method, one.path, content=one.body, headers=headers)
            needed = _needed(one)
            if needed in may:
                assert answer.status_code == 200, f"{one}: {answer.text}"
                continue
            assert answer.status_code == 403, str(one)
            challenge = f'Bearer error="insufficient_scope", scope="documents:{needed}"'
            assert answer.headers["www-authenticate"] == challenge
    if "write" not in may:
        assert (await parts.desk.document(Caller(ACME), "doc-1")).text == "Whales are mammals."


def _needed(operation: Operation) -> str:
    return "write" if operation.method in {"PUT", "DELETE"} else "read"
