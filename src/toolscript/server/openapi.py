"""The OpenAPI document of the service: what its routes do not say themselves.

Which credential and scope an operation needs, which errors and headers it may answer, and examples of answers.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from toolscript.core.auth.model import Scope
from toolscript.core.web.errors import documented, error_schemas
from toolscript.core.web.request_context import HEADER
from toolscript.documents.http.upload import document_schemas
from toolscript.tools.http.access import Access
from toolscript.tools.http.jobs import job_schemas

Json = dict[str, Any]

_TEXT = {"type": "string"}
_SECONDS = {"type": "integer", "minimum": 0}
_REQUEST_ID = {"description": "Id of the request, also in the log.", "required": True, "schema": _TEXT}
_CHALLENGE = {"description": "How to authenticate.", "required": True, "schema": _TEXT}
_RETRY_AFTER = {"description": "Seconds to wait before the next try.", "required": True, "schema": _SECONDS}
_RETRY_AFTER_MAYBE = {
    "description": "Seconds to wait before the next try; not sent where no wait helps, or none is known.",
    "schema": _SECONDS,
}
_HEADERS: Mapping[str, Json] = {
    "401": {"WWW-Authenticate": _CHALLENGE},
    "429": {"Retry-After": _RETRY_AFTER},
    "503": {"Retry-After": _RETRY_AFTER_MAYBE},
}
# Any operation that authenticates its client may answer these.
_ALWAYS = documented(429, 500)

SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the configured issuer with a tenant, and with the scope that `security` of the "
        "operation names. A token without the claim `scope` has every scope but `tools:manage`. In the catalog it "
        "sees the namespaces of its claim.",
    },
    "admin": {
        "type": "http",
        "scheme": "bearer",
        "description": "TOOLSCRIPT_ADMIN_TOKEN. Over the socket of `serve --socket` no token is needed.",
    },
}
# By tag: who may read, and who may write. The routes of the catalog and the security of all follow this table.
ACCESS = {
    "tools": (Access.READ, Access.MANAGE),
    "skills": (Access.READ, Access.ADMIN),
    "suggestions": (Access.MANAGE, Access.ADMIN),
    "curation": (Access.MANAGE, Access.MANAGE),
    "tool_searches": (Access.MANAGE, Access.MANAGE),
    "changes": (Access.MANAGE, Access.MANAGE),
    "sources": (Access.READ, Access.MANAGE),
    "jobs": (Access.MANAGE, Access.MANAGE),
    "audit": (Access.MANAGE, Access.MANAGE),
    "tenants": (Access.ADMIN, Access.ADMIN),
    "knowledge": (Access.READ, Access.ADMIN),
}


class DescribedApi(FastAPI):
    def openapi(self) -> Json:
        if not self.openapi_schema:
            schema = super().openapi()
            components = schema.setdefault("components", {})
            components["securitySchemes"] = SECURITY_SCHEMES
            components.setdefault("schemas", {}).update({**error_schemas(), **document_schemas(), **job_schemas()})
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    _complete_responses(operation)
                    _complete_security(operation, is_read=method == "get" or "search" in path)
                    _add_example(operation)
        return super().openapi()


def _complete_security(operation: Json, *, is_read: bool) -> None:
    """Name the credentials of an operation and the scope of its token, for programs and in words.

    For a scheme that is not OAuth, OpenAPI lets the list of a requirement name roles: here the scope.
    """
    if "401" not in operation["responses"]:
        operation["security"] = []
        return
    operation["security"], words = _needed(operation["tags"][0], is_read=is_read)
    operation["description"] = f"{operation.get('description', '')}\n\n{words}".strip()


def _needed(tag: str, *, is_read: bool) -> tuple[list[Json], str]:
    if tag == "documents":
        scope = Scope.DOCUMENTS_READ if is_read else Scope.DOCUMENTS_WRITE
        return [{"token": [scope.value]}], f"Scope: `{scope}`."
    access = ACCESS[tag][0 if is_read else 1]
    if access is Access.ADMIN:
        return [{"admin": []}], "For administrators."
    if access is Access.MANAGE:
        scope = Scope.TOOLS_MANAGE
        return [{"admin": []}, {"token": [scope.value]}], f"For administrators, or scope: `{scope}`."
    is_library = tag == "knowledge"
    scope = Scope.KNOWLEDGE_READ if is_library else Scope.TOOLS_READ
    # Anonymous clients may have the scope, so no credential is a choice, too. The library has no administrators.
    choices: list[Json] = [{"token": [scope.value]}, *([] if is_library else [{"admin": []}]), {}]
    return choices, f"Scope: `{scope}`, which clients without a token have where the operator made it public."


def _complete_responses(operation: Json) -> None:
    responses: Json = operation["responses"]
    if "requestBody" in operation:
        responses["413"] = documented(413)[413]
    if "401" in responses:
        responses |= {str(status): _ALWAYS[status] for status in _ALWAYS if str(status) not in responses}
    for status, response in responses.items():
        responses[status] = {
            **response,
            "headers": {**response.get("headers", {}), HEADER.decode(): _REQUEST_ID, **_HEADERS.get(status, {})},
        }
    operation["responses"] = dict(sorted(responses.items()))


def _add_example(operation: Json) -> None:
    example = answer_examples().get(operation["operationId"])
    if example is not None:
        status = next(status for status in operation["responses"] if status.startswith("2"))
        operation["responses"][status]["content"]["application/json"]["example"] = example


@cache
def answer_examples() -> Mapping[str, Any]:
    """Return an answer by operation; the document's schemas are checked against them."""
    examples: Mapping[str, Any] = json.loads(Path(__file__).with_name("openapi_examples.json").read_text("utf-8"))
    return examples
