"""/docs: the API reference as one HTML page, rendered from the OpenAPI schema without scripts or remote assets."""

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from toolscript.core.web.request_context import NOTHING_LOADED
from toolscript.core.web.routers import api_router

Json = dict[str, Any]

MAX_DEPTH = 8
SAMPLES: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}

DOCS_PATH, STYLE_PATH = "/docs", "/docs/reference.css"
ERRORS = '{"error": {"code", "message", "details"}}'
ONLY_OUR_STYLE = f"{NOTHING_LOADED}; style-src 'self'"


def operation_html(api: Json, method: str, path: str, operation: Json) -> str:
    body = _content(operation.get("requestBody", {}))
    sample = None if body is None else sample_of(api, body)
    sections = [
        f"<p>{escape(operation['description'])}</p>" if operation.get("description") else "",
        _parameters(api, operation.get("parameters", [])),
        "" if body is None else f"<h3>Body</h3>{_schema(api, body)}",
        f"<h3>Try it</h3><pre>{escape(command_of(method, path, sample, operation))}</pre>",
        "<h3>Answers</h3>",
        *(_response(api, status, response) for status, response in operation.get("responses", {}).items()),
    ]
    return (
        f'<details><summary><span class="method {escape(method)}">{escape(method.upper())}</span>'
        f'<code>{escape(path)}</code><span class="what">{escape(operation.get("summary", ""))}</span></summary>'
        f"<div>{''.join(sections)}</div></details>\n"
    )


def command_of(method: str, path: str, sample: object, operation: Json) -> str:
    """Return a curl command; the reader sets `$URL` and `$TOKEN`."""
    required = [
        parameter
        for parameter in operation.get("parameters", [])
        if parameter.get("required") and parameter["in"] == "query"
    ]
    query = "&".join(f"{parameter['name']}=text" for parameter in required)
    words = ["curl", *([] if method == "get" else ["-X", method.upper()])]
    words.append(f'"$URL{path}{"?" + query if query else ""}"')
    if {"401", "403"} & operation.get("responses", {}).keys():
        words += ["-H", '"Authorization: Bearer $TOKEN"']
    if sample is not None:
        words += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(json.dumps(sample))]
    return " ".join(words)


def sample_of(api: Json, schema: Json, depth: int = 0) -> Any:
    """Return an example value of the schema, with its required fields."""
    schema = _resolve(api, schema)
    for name in ("example", "default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("examples") or schema.get("enum"):
        return (schema.get("examples") or schema["enum"])[0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return sample_of(api, schema[name][0], depth + 1)
    return _plain_sample(api, schema, depth)


def _plain_sample(api: Json, schema: Json, depth: int) -> Any:
    kind = schema.get("type")
    if kind == "array":
        return [sample_of(api, schema.get("items", {}), depth + 1)] if depth < MAX_DEPTH else []
    if kind == "object" or "properties" in schema:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        return {name: sample_of(api, fields[name], depth + 1) for name in required if name in fields}
    return SAMPLES.get(str(kind), {})


def _parameters(api: Json, parameters: list[Json]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(row['name'])}</code></td>"
        f"<td>{escape(row['in'])}{', required' if row.get('required') else ''}</td>"
        f"<td>{escape(_kind(api, row.get('schema', {})))}</td><td>{escape(row.get('description', ''))}</td></tr>"
        for row in parameters
    )
    return f"<h3>Parameters</h3><table><tr><th>Name</th><th>In</th><th>Kind</th><th></th></tr>{rows}</table>"


def _response(api: Json, status: str, response: Json) -> str:
    """Render a response. All errors share one schema, which the page shows once."""
    heading = f"<code>{escape(status)}</code> {escape(response.get('description', ''))}"
    schema = None if status.startswith(("4", "5")) else _content(response)
    if schema is None:
        return f"<p>{heading}</p>"
    return f"<details><summary>{heading}</summary><div>{_schema(api, schema)}</div></details>"


def _schema(api: Json, schema: Json) -> str:
    return f"<pre>{escape(json.dumps(_inline_references(api, schema), indent=2, ensure_ascii=False))}</pre>"


def _inline_references(api: Json, value: Any, within: tuple[str, ...] = ()) -> Any:
    """Inline all references, except recursive ones."""
    if isinstance(value, list):
        return [_inline_references(api, item, within) for item in value]
    if not isinstance(value, dict):
        return value
    name = str(value.get("$ref", ""))
    if name and name not in within and len(within) < MAX_DEPTH:
        return _inline_references(api, _resolve(api, value), (*within, name))
    return {key: _inline_references(api, item, within) for key, item in value.items()}


def _resolve(api: Json, schema: Json) -> Json:
    name = str(schema.get("$ref", ""))
    if not name:
        return schema
    definition: Json = api.get("components", {}).get("schemas", {}).get(name.rpartition("/")[2], {})
    return definition


def _kind(api: Json, schema: Json) -> str:
    schema = _resolve(api, schema)
    if "anyOf" in schema:
        return " or ".join(_kind(api, option) for option in schema["anyOf"])
    kind = " | ".join(map(str, schema["enum"])) if "enum" in schema else str(schema.get("type", "any"))
    limits = [
        f"{word} {schema[name]}" for name, word in (("minimum", "from"), ("maximum", "to")) if name in schema
    ]
    default = [f"default {schema['default']}"] if schema.get("default") not in (None, "") else []
    return ", ".join([" ".join([kind, *limits]), *default])


def _content(part: Json) -> Json | None:
    """Return the schema of a body or response, JSON first; None if there is none."""
    content: Json = part.get("content", {})
    kinds: list[Json] = [content.get("application/json", {}), *content.values()]
    return next((kind["schema"] for kind in kinds if "schema" in kind), None)


STYLE = Path(__file__).with_name("reference.css")


def reference_routes(described: Callable[[], Json]) -> APIRouter:
    router = api_router()
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
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>\n{"".join(sections)}' for tag, sections in groups.items()
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
