"""The clients have every operation of both APIs, and no other."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from toolscript.client.clients import Client
from toolscript.client.exchange import Pull, Request
from toolscript.client.resource import Resource, listing, operation
from toolscript.core.health import Health
from toolscript.gateway.openapi import openapi_document
from toolscript.server.app import create_app

pytestmark = pytest.mark.requirement("AP-002")

PREFIX, ALIAS = "/api/v1/", "_alias"
# A delete by a list of ids serves one id, too.
NOT_NEEDED = {("DELETE", "/api/v1/documents/{document_id}")}
# Outside `/api/v1`.
BESIDE = {("GET", "/runtime/tools.ts")}
GIVEN: dict[str, object] = {"documents": [{"id": "a"}], "document_ids": ["a"], "skill": {}, "changes": {}}
GIVEN |= {"items": [], "skill_ids": []}


def described() -> set[tuple[str, str]]:
    async def check() -> Health:
        return Health({})

    nothing = cast("Any", None)
    documents = create_app(nothing, nothing, nothing, nothing, check).openapi(), openapi_document(3, 0.35)
    return {
        (method.upper(), path)
        for document in documents
        for path, operations in document["paths"].items()
        for method, described in operations.items()
        if path.startswith(PREFIX) and not described["operationId"].endswith(ALIAS)
    }


def requests_of(client: Client) -> Iterator[Request]:
    """Yield the first request of every method, called with what it requires."""
    for name in dir(client):
        resource = getattr(client, name)
        for value in vars(type(resource)).values() if isinstance(resource, Resource) else ():
            if not isinstance(value, operation | listing):
                continue
            build: Any = inspect.unwrap(cast("Any", value))
            required = [
                parameter.name
                for parameter in inspect.signature(build).parameters.values()
                if parameter.default is parameter.empty and parameter.name != "self"
            ]
            built = build(resource, **{key: GIVEN.get(key, "1") for key in required})
            steps = built.page("") if isinstance(value, listing) else built
            step = next(steps)
            entries = iter([{"id": "a"}])
            while isinstance(step, Pull):
                step = steps.send(next(entries, None))
            assert isinstance(step, Request)
            yield step


def test_every_operation_of_both_apis_has_a_method_and_every_method_an_operation() -> None:
    operations = described() | BESIDE
    patterns = {
        (method, path): re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))) for method, path in operations
    }
    asked = set()
    with Client("http://127.0.0.1:1") as client:
        for request in requests_of(client):
            path = request.path.partition("?")[0]
            # A fixed path such as `/tools/search` before one with a name in it.
            (_, found) = min(
                ("{" in template, (method, template))
                for (method, template), pattern in patterns.items()
                if method == request.method and pattern.fullmatch(path)
            )
            asked.add(found)
    assert operations - asked == NOT_NEEDED
