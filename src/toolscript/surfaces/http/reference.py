"""/docs: what /openapi.json says, as a page. Made here whole: it loads no script, and nothing from elsewhere."""

import asyncio
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

from fastapi import APIRouter, Response

from toolscript.surfaces.http.reference_parts import Json, operation_html
from toolscript.surfaces.security_headers import NOTHING_LOADED

STYLE = Path(__file__).with_name("reference.css")
DOCS_PATH, STYLE_PATH = "/docs", "/docs/reference.css"
ERRORS = '{"error": {"code", "message", "details"}}'
ONLY_OUR_STYLE = f"{NOTHING_LOADED}; style-src 'self'"


def reference_routes(described: Callable[[], Json]) -> APIRouter:
    router = APIRouter()
    page = cache(lambda: reference_html(described()))

    @router.get(DOCS_PATH, include_in_schema=False)
    async def docs() -> Response:
        headers = {"Content-Security-Policy": ONLY_OUR_STYLE}
        return Response(await asyncio.to_thread(page), media_type="text/html", headers=headers)

    @router.get(STYLE_PATH, include_in_schema=False)
    async def style() -> Response:
        return Response(await asyncio.to_thread(STYLE.read_bytes), media_type="text/css")

    return router


def reference_html(api: Json) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(operation_html(api, method, path, operation))
    links = " ".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in groups)
    parts = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>\n{"".join(shown)}' for tag, shown in groups.items()
    )
    info = api["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{STYLE_PATH}"></head>\n<body><h1>{title}</h1>'
        f"<p>{escape(info.get('summary', ''))} For programs: "
        f'<a href="/openapi.json">/openapi.json</a>. Every error is {escape(ERRORS)}.</p>\n'
        f"<nav>{links}</nav>\n{parts}</body></html>\n"
    )
