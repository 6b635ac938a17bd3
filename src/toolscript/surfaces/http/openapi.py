"""OpenAPI of the service, with what holds for every operation said once."""

from typing import Any

from fastapi import FastAPI

from toolscript.surfaces.request_context import HEADER

Json = dict[str, Any]

_TEXT = {"type": "string"}
_REQUEST_ID = {"description": "Id of the request, also in the log.", "required": True, "schema": _TEXT}
_CHALLENGE = {"description": "How to show the token.", "required": True, "schema": _TEXT}
_TOO_LARGE = {
    "description": "Content Too Large",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}},
}


class DescribedApi(FastAPI):
    def openapi(self) -> Json:
        if not self.openapi_schema:
            for operations in super().openapi()["paths"].values():
                for operation in operations.values():
                    _complete(operation)
        return super().openapi()


def _complete(operation: Json) -> None:
    responses: Json = operation["responses"]
    if "requestBody" in operation:
        responses["413"] = dict(_TOO_LARGE)
    for status, response in responses.items():
        headers = response.setdefault("headers", {})
        headers[HEADER.decode()] = _REQUEST_ID
        if status == "401":
            headers["WWW-Authenticate"] = _CHALLENGE
    operation["responses"] = dict(sorted(responses.items()))
