"""Errors over HTTP: the error envelope, its status and headers, and its OpenAPI description."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from toolscript.core.auth.model import Identity, Principal, Scope
from toolscript.core.errors import (
    ERROR_TABLE,
    Forbidden,
    SetupError,
    ToolscriptError,
    Unauthorized,
    Unavailable,
    envelope,
    envelope_of,
    told_to_clients,
)
from toolscript.core.retrieval.deadline import RETRY_AFTER_SECONDS
from toolscript.core.web.request_context import CODE, ERROR_CODES, code_of_status, has_kinds

logger = logging.getLogger(__name__)

SEND_HINT = "send Authorization: Bearer <token>"
# An error code of RFC 6750, for the challenge in WWW-Authenticate.
INSUFFICIENT_SCOPE = "insufficient_scope"


def require_scope(client: Principal | Identity, scope: Scope) -> None:
    """Raise Unauthorized for a client without a token, Forbidden for a token without the scope."""
    if client.may(scope):
        return
    if isinstance(client, Identity) and client.principal is None:
        raise Unauthorized("a token is needed", hint=SEND_HINT, details={"scope": str(scope)})
    raise Forbidden(
        f"the token does not have the scope {scope}",
        hint="get a token with it from the issuer",
        details={"error": INSUFFICIENT_SCOPE, "scope": str(scope)},
    )


def refusal_headers(status: int, error: ToolscriptError, **more: str) -> dict[str, str]:
    """Return WWW-Authenticate or Retry-After; `more` are further parameters of the challenge."""
    params = {name: str(error.details[name]) for name in ("error", "scope") if error.details.get(name)}
    if status == 401 or params.get("error") == INSUFFICIENT_SCOPE:
        challenge = ", ".join(f'{name}="{value}"' for name, value in {**more, **params}.items())
        return {"WWW-Authenticate": f"Bearer {challenge}".rstrip()}
    retry_after = error.details.get("retry_after_seconds")
    return {} if retry_after is None else {"Retry-After": str(retry_after)}


def _known_codes(schema: dict[str, Any]) -> None:
    """List the codes and allow others: a client that was generated must not break when one is added."""
    schema.pop("type")
    schema["anyOf"] = [{"type": "string", "enum": list(ERROR_CODES)}, {"type": "string"}]


class ErrorBody(BaseModel):
    """An error for people and programs."""

    code: str = Field(description=CODE, json_schema_extra=_known_codes)
    message: str = Field(description="What went wrong, for people.")
    details: dict[str, object] = Field(description="Facts such as `field`, `hint` and `retry_after_seconds`.")


class ErrorEnvelope(BaseModel):
    """The one shape of an error."""

    error: ErrorBody = Field(description="The error.")


# When a status is answered, and what to do then. A route may say more about its own.
ERROR_TEXTS = {
    400: "The query is blank: send some words. Everything else that is wrong with a request is 422.",
    401: "There is no token, or it is not valid: `WWW-Authenticate` says which, and how to authenticate.",
    403: "The token does not have the scope that `details.scope` names, the plan does not allow this, or it is "
    "not allowed from this address or host name. The same request will not succeed later.",
    404: "Nothing has this id or name in the namespaces that the client sees; `details.hint` says how to find it.",
    409: "It exists already, or was decided or changed meanwhile: read it again before the next try.",
    413: "The body is larger than the operation takes: send it in parts.",
    415: "The operation does not take this `Content-Type` or `Content-Encoding`.",
    422: "The request is not valid: `details.problems`, or `details.field`, names what to change.",
    429: "The requests of this minute are spent, or too many uploads run at once: wait for `Retry-After` seconds.",
    500: "A fault of the service; its log has the `x-request-id`. A read may be tried again.",
    503: "An engine does not answer, or the load is above capacity: try again, after `Retry-After` seconds where "
    "it is sent. With `details.retryable` false, only the operator can change it, as `details.hint` says.",
}
ERROR_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}}


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Return the `responses` of a route in OpenAPI: these statuses respond with the envelope.

    A reference to `error_schemas` and not the model, of which FastAPI would build a validator for every status of
    every route: that takes as long as all the rest of the API.
    """
    return {status: {"description": ERROR_TEXTS[status], "content": ERROR_CONTENT} for status in statuses}


def error_schemas() -> dict[str, object]:
    """Return the schemas of the envelope, for the components of an OpenAPI document."""
    schema = ErrorEnvelope.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), ErrorEnvelope.__name__: schema}


def install_error_handlers(app: FastAPI) -> None:
    """Respond to all expected errors with the envelope. Others pass through, to RequestContext."""

    @app.exception_handler(ToolscriptError)
    async def handle_toolscript_error(request: Request, error: ToolscriptError) -> JSONResponse:
        status = ERROR_TABLE[type(error)].http_status
        if isinstance(error, SetupError):
            # A client would retry a 503, but only an administrator can change this one.
            error.details.setdefault("retryable", False)
        elif isinstance(error, Unavailable):
            error.details.setdefault("retry_after_seconds", RETRY_AFTER_SECONDS)
        told = told_to_clients(error)
        if told is not error:
            logger.warning("an engine failed a request", extra={"reason": error.message})
        body = envelope_of(told, by_kind=has_kinds(request.url.path))
        return JSONResponse(body, status, _state_headers(request) | refusal_headers(status, error))

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        problems = [
            {"where": ".".join(map(str, problem["loc"])), "problem": problem["msg"]} for problem in error.errors()
        ]
        first = problems[0] if problems else {"where": "request", "problem": "malformed"}
        message = f"{first['where']}: {first['problem']}"
        body = envelope("VALIDATION_ERROR", message, {"problems": problems})
        return JSONResponse(body, 422, _state_headers(request))

    @app.exception_handler(HTTPException)
    async def handle_http_exception(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:
            # FastAPI raises 400 for bodies that are not text or nested too deeply, and 422 for other invalid JSON.
            return await handle_validation_error(
                request, RequestValidationError([{"loc": ("body",), "msg": "is not JSON"}])
            )
        code = code_of_status(request.url.path, error.status_code)
        headers = (_allow_header(app, request) or error.headers) if error.status_code == 405 else error.headers
        response_headers = {**_state_headers(request), **(headers or {})}
        return JSONResponse(envelope(code, str(error.detail)), error.status_code, response_headers)


def _state_headers(request: Request) -> dict[str, str]:
    """Return headers that handlers set: rate limits (core.web.auth), connection (documents.http.upload)."""
    return {**getattr(request.state, "rate_headers", {}), **getattr(request.state, "hang_up_headers", {})}


def _allow_header(app: FastAPI, request: Request) -> dict[str, str] | None:
    """Return Allow with the methods of all routes of a path; Starlette names those of one route.

    A path of its own, such as `/documents/search`, comes before a template that it fits, too.
    """
    path = getattr(request.scope.get("route"), "path_format", None)
    paths = app.openapi()["paths"]
    methods = paths.get(request.url.path) or paths.get(path)
    return methods and {"Allow": ", ".join(method.upper() for method in methods)}
