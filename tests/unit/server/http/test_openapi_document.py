"""The OpenAPI document says of each operation which scope it needs, when it fails, and what it answers."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.support.token_issuer import an_issuer
from tests.unit.tools.namespaces.builders import Client, Json, Service, planted
from toolscript.core.auth.model import Scope
from toolscript.core.errors import ERROR_TABLE
from toolscript.server.openapi import answer_examples

pytestmark = pytest.mark.requirement("AP-001")

# The source document fixes the operation id of this alias.
FIXED = "search_knowledge"
MAIN = {"search_tools", "list_tools", "get_tool", "list_skills", "get_skill", "search_documents", "get_document"}
MAIN |= {"list_documents", "search_library", "list_library_sources", "get_chunk"}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder: Path = tmp_path_factory.mktemp("described")
    async with planted(folder, ("default", "plain"), public_scopes="") as served:
        yield served


@pytest.fixture
async def document(service: Service) -> Json:
    return service.app.openapi()


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def scopes_of(operation: Json) -> list[str]:
    return [scope for choice in operation["security"] for scope in choice.get("token", ())]


async def test_a_token_without_the_scope_that_an_operation_names_is_refused(
    service: Service, document: Json
) -> None:
    asked = 0
    for method, path, operation in operations(document):
        scopes = scopes_of(operation)
        if not scopes or operation["tags"][0] in ("documents", "knowledge"):
            continue
        others = " ".join(scope for scope in Scope if scope not in scopes)
        client = Client(service.http, an_issuer().token("acme", scope=others))
        answer = await client.ask(method, path.replace("{tool_id}", "1").replace("{name}", "x"), {})
        assert (answer.status_code, answer.json()["error"]["details"].get("scope")) == (403, scopes[0]), path
        asked += 1
    assert asked > 20


async def test_every_operation_with_a_credential_names_its_scope_in_words_too(document: Json) -> None:
    for _, path, operation in operations(document):
        for scope in scopes_of(operation):
            assert f"`{scope}`" in operation["description"], path
        if operation["security"] and not scopes_of(operation):
            assert "For administrators." in operation["description"], path


async def test_an_alias_is_deprecated_and_its_id_says_that_it_is_one(document: Json) -> None:
    for _, path, operation in operations(document):
        is_alias = operation["description"].startswith("Alias of")
        assert operation.get("deprecated", False) == is_alias, path
        assert operation["operationId"].endswith("_alias") == (is_alias and operation["operationId"] != FIXED)


async def test_every_error_says_when_it_happens_and_how_long_to_wait(document: Json) -> None:
    for _, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) < 400 or not operation["security"]:
                continue
            assert len(response["description"]) > 30, (path, status)
            assert ("Retry-After" in response["headers"]) == (status in ("429", "503")), (path, status)


async def test_the_document_lists_every_code_of_an_error(document: Json) -> None:
    known, other = document["components"]["schemas"]["ErrorBody"]["properties"]["code"]["anyOf"]
    codes = {row.code for row in ERROR_TABLE.values()} | {row.kind for row in ERROR_TABLE.values() if row.kind}
    assert codes | {"METHOD_NOT_ALLOWED", "TOO_LARGE", "UNSUPPORTED", "TIMEOUT"} == set(known["enum"])
    assert other == {"type": "string"}


async def test_examples_of_answers_fit_their_schemas(document: Json) -> None:
    shown: dict[str, Any] = {}
    for _, _, operation in operations(document):
        for response in operation["responses"].values():
            content = response.get("content", {}).get("application/json", {})
            if "example" in content:
                schema = {**content["schema"], "components": document["components"]}
                jsonschema.Draft202012Validator(schema).validate(content["example"])
                shown[operation["operationId"]] = content["example"]
    assert shown == answer_examples()
    assert shown.keys() >= MAIN


async def test_bodies_that_the_service_reads_itself_are_typed(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert {"id", "text"} == set(schemas["DocumentToPut"]["required"])
    assert {"server", "name"} == set(schemas["ItemToImport"]["required"])
    put = document["paths"]["/api/v1/documents"]["put"]["requestBody"]["content"]
    assert put["application/json"]["schema"] == {"$ref": "#/components/schemas/DocumentsToPut"}
    assert "DocumentToPut" in put["application/x-ndjson"]["schema"]["description"]
