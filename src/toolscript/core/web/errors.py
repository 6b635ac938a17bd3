"""Errors over HTTP: the one shape of an error, its status and headers, and its OpenAPI description."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from toolscript.core.auth.model import Identity, Principal, Scope
from toolscript.core.errors import ERROR_TABLE, Forbidden, ToolscriptError, Unauthorized, envelope, envelope_of

SEND_HINT = "send Authorization: Bearer <token>"

INSUFFICIENT_SCOPE = "insufficient_scope"
_CODES = {404: "NOT_FOUND", **dict.fromkeys((405, 413, 415), "VALIDATION_ERROR")}


def require_scope(asking: Principal | Identity, scope: Scope) -> None:
    """Of somebody without a token one is wanted; with one that does not go so far, another."""
    if asking.may(scope):
        return
    if isinstance(asking, Identity) and asking.principal is None:
        raise Unauthorized("a token is needed", hint=SEND_HINT, details={"scope": str(scope)})
    raise Forbidden(
        f"the token does not have the scope {scope}",
        hint="get one from its issuer that has",
        details={"error": INSUFFICIENT_SCOPE, "scope": str(scope)},
    )


def refusal_headers(status: int, error: ToolscriptError, **more: str) -> dict[str, str]:
    """`more` stands in the challenge, too, where there is one."""
    asked = {name: str(error.details[name]) for name in ("error", "scope") if error.details.get(name)}
    if status == 401 or asked.get("error") == INSUFFICIENT_SCOPE:
        said = ", ".join(f'{name}="{value}"' for name, value in {**more, **asked}.items())
        return {"WWW-Authenticate": f"Bearer {said}".rstrip()}
    after = error.details.get("retry_after_seconds")
    return {} if after is None else {"Retry-After": str(after)}


class ErrorBody(BaseModel):
    code: str
    message: str
    details: dict[str, object]


class ErrorEnvelope(BaseModel):
    error: ErrorBody


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """For a route's OpenAPI: these statuses answer with the envelope."""
    return {status: {"model": ErrorEnvelope} for status in statuses}


def install_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(ToolscriptError)
    async def ours(request: Request, error: ToolscriptError) -> JSONResponse:
        status = ERROR_TABLE[type(error)].http_status
        return JSONResponse(envelope_of(error), status, _told_headers(request) | refusal_headers(status, error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        problems = [{"where": ".".join(map(str, one["loc"])), "problem": one["msg"]} for one in error.errors()]
        first = problems[0] if problems else {"where": "request", "problem": "malformed"}
        message = f"{first['where']}: {first['problem']}"
        body = envelope("VALIDATION_ERROR", message, {"problems": problems})
        return JSONResponse(body, 422, _told_headers(request))

    @app.exception_handler(HTTPException)
    async def the_frameworks(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:
            # Said of a body that is no text, or nested without end; of all others that are no JSON it says 422.
            return await malformed(request, RequestValidationError([{"loc": ("body",), "msg": "is not JSON"}]))
        code = _CODES.get(error.status_code, "INTERNAL_ERROR")
        headers = _every_method(app, request) or error.headers if error.status_code == 405 else error.headers
        told = {**_told_headers(request), **(headers or {})}
        return JSONResponse(envelope(code, str(error.detail)), error.status_code, told)


def _told_headers(request: Request) -> dict[str, str]:
    """What the caller is told of its budget (core.web.auth), and of the connection (documents.http.upload)."""
    return {**getattr(request.state, "rate_headers", {}), **getattr(request.state, "hang_up_headers", {})}


def _every_method(app: FastAPI, request: Request) -> dict[str, str] | None:
    """The framework names those of one route, and a path has several."""
    path = getattr(request.scope.get("route"), "path_format", None)
    described = app.openapi()["paths"].get(path)
    return described and {"Allow": ", ".join(method.upper() for method in described)}
