"""Every error, ours and the framework's, in the one shape."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from toolscript.errors import ToolscriptError
from toolscript.surfaces.error_table import ERROR_TABLE, envelope, envelope_of
from toolscript.surfaces.http.challenges import refusal_headers

_CODES = {404: "NOT_FOUND", **dict.fromkeys((405, 413, 415), "VALIDATION_ERROR")}


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
        problems = [{"where": _where(one["loc"]), "problem": one["msg"]} for one in error.errors()]
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
    """What the caller is told of its budget, see callers.py, and of the connection, see document_receiving.py."""
    return {**getattr(request.state, "rate_headers", {}), **getattr(request.state, "hang_up_headers", {})}


def _every_method(app: FastAPI, request: Request) -> dict[str, str] | None:
    """The framework names those of one route, and a path has several."""
    path = getattr(request.scope.get("route"), "path_format", None)
    described = app.openapi()["paths"].get(path)
    return described and {"Allow": ", ".join(method.upper() for method in described)}


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in location)
