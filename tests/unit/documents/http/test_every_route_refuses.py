"""Every route of documents refuses whoever is not certainly a caller, before anything of the request is read.

Which routes there are is asked of the API itself: one that is added later is tried by itself. The same through a
real `serve`: tests/e2e/tenants/test_running_service.py.
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
from tests.unit.documents.http.operations import Operation, as_sent, require_principal, require_refusal
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Principal, Tenant
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.web.auth import authenticator_of
from toolscript.documents.model.document import Document
from toolscript.testing.auth import MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-004")

SECRET = "xylograph"
STRANGERS = bad_requests(an_issuer())
DEBUG = [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "acme"), ("X-Tenant", "acme")]


@pytest.fixture
async def app(parts: Parts, tmp_path: Path) -> AsyncIterator[Any]:
    """With a document of the tenant that bad tokens claim to be of."""
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "keys.json")))
    verifier = JwtVerifier(keys, TokenRules(issuer.name, issuer.audience), {}, UNLIMITED)
    await parts.service.put(Principal(Tenant("acme")), [Document("doc-1", SECRET, {"is": SECRET})])
    yield app_of(replace(parts.routes(), principal=authenticator_of(verifier, MemoryRequestBudget())))
    await keys.close()


@pytest.fixture
def operations(app: Any) -> list[Operation]:
    return list(require_principal(app.openapi()))


async def asked(app: Any, operation: Operation, shown: Shown) -> httpx2.Response:
    """Whoever reads the body before it has refused fails."""

    async def unread(scope: Any, _: Any, send: Any) -> None:
        async def receive() -> Any:
            raise AssertionError("the body was read")

        await app(scope, receive, send)

    headers = as_sent([*operation.headers.items(), *shown.headers])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(unread), base_url="http://testserver") as client:
        return await client.request(
            operation.method, operation.path, content=operation.body, headers=headers, params=dict(shown.params)
        )


async def test_there_are_routes_to_try_and_many_kinds_of_strangers(operations: list[Operation]) -> None:
    tried = {(one.method, one.path) for one in operations}
    assert tried >= {("POST", "/search"), ("PUT", "/documents"), ("DELETE", "/documents")}
    assert tried >= {("GET", "/documents/doc-1"), ("DELETE", "/documents/doc-1")}
    assert len(STRANGERS) > 60


async def test_every_kind_of_stranger_is_refused_by_every_route_and_learns_nothing(
    app: Any, parts: Parts, operations: list[Operation]
) -> None:
    for (kind, shown), operation in itertools.product(STRANGERS.items(), operations):
        for sent in (shown, replace(shown, headers=[*shown.headers, *DEBUG])):
            require_refusal(await asked(app, operation, sent), SECRET, f"{kind}: {operation}")
    stands = await parts.service.document(Principal(Tenant("acme")), "doc-1")
    assert (stands.text, parts.searched) == (SECRET, [])


async def test_who_is_a_caller_is_read_and_answered(app: Any, operations: list[Operation]) -> None:
    """Without this, a service that refuses everybody would pass."""
    token = [("Authorization", f"Bearer {an_issuer().token('acme')}")]
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://testserver") as client:
        for operation in sorted(operations, key=lambda one: one.method == "DELETE"):
            headers = [*operation.headers.items(), *token]
            answer = await client.request(
                operation.method, operation.path, content=operation.body, headers=headers
            )
            assert answer.status_code == 200, f"{operation}: {answer.text}"
