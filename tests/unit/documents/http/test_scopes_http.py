"""Reading documents requires one scope and writing another, on every route."""

from dataclasses import replace

import httpx2
import pytest

from tests.doubles import MemoryTokenVerifier
from tests.unit.documents.http.builders import Parts, app_of
from tests.unit.documents.http.operations import Operation, deletes, require_principal
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.web.auth import authenticator_of
from toolscript.documents.model.document import Document
from toolscript.testing import MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-004", "KN-005")

ACME = Tenant("acme")
TOKENS = {
    "all": Principal(ACME),
    "reads": Principal(ACME, scopes=frozenset({"documents:read"})),
    "writes": Principal(ACME, scopes=frozenset({"documents:write"})),
    "neither": Principal(ACME, scopes=frozenset({"knowledge:read"})),
}


@pytest.mark.parametrize(
    ("token", "may"),
    [("all", {"read", "write"}), ("reads", {"read"}), ("writes", {"write"}), ("neither", set[str]())],
)
async def test_scopes_limit_what_a_token_may_do(parts: Parts, token: str, may: set[str]) -> None:
    await parts.service.put(Principal(ACME), [Document("doc-1", "Whales are mammals.", {})])
    app = app_of(
        replace(parts.routes(), principal=authenticator_of(MemoryTokenVerifier(TOKENS), MemoryRequestBudget()))
    )
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        for operation in sorted(require_principal(app.openapi()), key=deletes):
            headers = {**operation.headers, "authorization": f"Bearer {token}"}
            answer = await client.request(
                operation.method, operation.path, content=operation.body, headers=headers
            )
            needed = _needed(operation)
            if needed in may:
                assert answer.status_code == 200, f"{operation}: {answer.text}"
                continue
            assert answer.status_code == 403, str(operation)
            challenge = f'Bearer error="insufficient_scope", scope="documents:{needed}"'
            assert answer.headers["www-authenticate"] == challenge
    if "write" not in may:
        assert (await parts.service.document(Principal(ACME), "doc-1")).text == "Whales are mammals."


def _needed(operation: Operation) -> str:
    return "write" if operation.method == "PUT" or deletes(operation) else "read"
