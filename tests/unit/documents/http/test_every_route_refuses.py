"""Every document route refuses a request without a valid token, before it reads the body.

The list of routes comes from the API itself, so new routes are covered automatically. The same through a real
`serve`: tests/e2e/tenants/test_running_service.py.
"""

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.bad_tokens import Shown, an_issuer, bad_requests
from tests.unit.documents.http.builders import Parts, app_of
from tests.unit.documents.http.operations import (
    Operation,
    as_sent,
    deletes,
    require_principal,
    require_refusal,
)
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Principal, Tenant
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.web.auth import authenticator_of
from toolscript.documents.model.document import Document
from toolscript.testing.auth import MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-004")

SECRET = "xylograph"
BAD_REQUESTS = bad_requests(an_issuer())
DEBUG = [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "acme"), ("X-Tenant", "acme")]


@pytest.fixture
async def app(parts: Parts, tmp_path: Path) -> AsyncIterator[Any]:
    """The API with a document of the tenant that bad tokens claim."""
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "keys.json")))
    verifier = JwtVerifier(keys, TokenRules(issuer.name, issuer.audience), {}, UNLIMITED)
    await parts.service.put(Principal(Tenant("acme")), [Document("doc-1", SECRET, {"is": SECRET})])
    yield app_of(replace(parts.routes(), principal=authenticator_of(verifier, MemoryRequestBudget())))
    await keys.close()


@pytest.fixture
def operations(app: Any) -> list[Operation]:
    return list(require_principal(app.openapi()))


async def send(app: Any, operation: Operation, credentials: Shown) -> httpx2.Response:
    """Send a request whose body must not be read."""

    async def unread(scope: Any, _: Any, send: Any) -> None:
        async def receive() -> Any:
            raise AssertionError("the body was read")

        await app(scope, receive, send)

    headers = as_sent([*operation.headers.items(), *credentials.headers])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(unread), base_url="http://testserver") as client:
        return await client.request(
            operation.method,
            operation.path,
            content=operation.body,
            headers=headers,
            params=dict(credentials.params),
        )


async def test_there_are_routes_and_many_kinds_of_bad_requests(operations: list[Operation]) -> None:
    tried = {(operation.method, operation.path) for operation in operations}
    assert tried >= {("POST", "/search"), ("PUT", "/documents"), ("DELETE", "/documents")}
    assert tried >= {("GET", "/documents/doc-1"), ("DELETE", "/documents/doc-1")}
    resource = "/api/v1/documents"
    assert tried >= {("PUT", resource), ("GET", resource), ("GET", f"{resource}/doc-1")}
    assert tried >= {
        ("POST", f"{resource}/search"),
        ("POST", f"{resource}/delete"),
        ("DELETE", f"{resource}/doc-1"),
    }
    assert len(BAD_REQUESTS) > 60


async def test_every_route_refuses_every_kind_of_bad_request_and_reveals_nothing(
    app: Any, parts: Parts, operations: list[Operation]
) -> None:
    for (kind, credentials), operation in itertools.product(BAD_REQUESTS.items(), operations):
        sent = replace(credentials, headers=[*credentials.headers, *DEBUG])
        require_refusal(await send(app, operation, sent), SECRET, f"{kind}: {operation}")
    stored = await parts.service.document(Principal(Tenant("acme")), "doc-1")
    assert (stored.text, parts.searched) == (SECRET, [])


async def test_a_client_with_a_valid_token_gets_200(app: Any, operations: list[Operation]) -> None:
    """Without this, a service that refuses every request would pass."""
    token = [("Authorization", f"Bearer {an_issuer().token('acme')}")]
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://testserver") as client:
        for operation in sorted(operations, key=deletes):
            headers = [*operation.headers.items(), *token]
            answer = await client.request(
                operation.method, operation.path, content=operation.body, headers=headers
            )
            assert answer.status_code == 200, f"{operation}: {answer.text}"
