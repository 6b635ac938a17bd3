"""What there is to try in the demo: for a terminal, and as the page at `/`."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse

from toolscript.surfaces.http.reference import ONLY_OUR_STYLE, STYLE_PATH

TITLE = "Toolscript demo"
ON_WITH_ENGINES = """\
pip install 'toolscript[service]'       # and PostgreSQL, Qdrant and, for a library, MongoDB
toolscript migrate                      # TOOLSCRIPT_POSTGRES_URL
toolscript sync my-tools.jsonl          # or the MCP servers of your .toolscript.json
toolscript worker --drain               # TOOLSCRIPT_QDRANT_URL
toolscript ingest handbook/             # TOOLSCRIPT_MONGO_URL
toolscript serve"""


@dataclass(frozen=True)
class Step:
    title: str
    command: str


@dataclass(frozen=True)
class Tour:
    """`counts` says how much of what there is."""

    address: str
    token: str
    model: str
    counts: Mapping[str, int]

    @property
    def about(self) -> str:
        counted = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return (
            f"The service of Toolscript in one process, without an engine: {counted}. It listens on this machine "
            "alone. All is in memory, and gone when it ends. The settings of an installation do not count here."
        )

    @property
    def about_model(self) -> str:
        if self.model:
            return f"Texts are embedded by {self.model}."
        return (
            "No model is loaded: texts are alike where they share words. TOOLSCRIPT_EMBEDDING_MODEL may name the "
            "folder of one in ONNX format; then meaning counts as well."
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        client = {"mcpServers": {"toolscript": {"type": "http", "url": f"{self.address}/mcp"}}}
        return (
            Step("Find a tool", self._post("/api/v1/search", query="schedule a meeting with Anna", limit=3)),
            Step(
                "See why it was found",
                f'toolscript tools search "read a file" --explain --url {shlex.quote(self.address)}',
            ),
            Step("Ask the library", self._post("/search_knowledge", query="my compost heap smells", limit=2)),
            Step("Become the tenant whose documents are here, for a day", f"TOKEN={self.token}"),
            Step(
                "Find a document of this tenant",
                self._post(
                    "/search", '-H "Authorization: Bearer $TOKEN"', query="how many days of holiday", top_k=2
                ),
            ),
            Step("Let an agent do the same, over MCP; documents need the token as a header", json.dumps(client)),
        )

    @property
    def text(self) -> str:
        tries = "\n\n".join(f"{step.title}:\n{step.command}" for step in self.steps)
        return (
            f"{TITLE}: {self.address}\n{self.about}\n{self.about_model}\n\n{tries}\n\n"
            f"All requests and answers: {self.address}/docs\nGo on with engines: {self.address}/\nCtrl+C ends it."
        )

    @property
    def html(self) -> str:
        tries = "".join(f"<h3>{escape(one.title)}</h3><pre>{escape(one.command)}</pre>\n" for one in self.steps)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="{STYLE_PATH}"></head>\n<body><h1>{TITLE}</h1>\n'
            f"<p>{escape(self.about)}</p>\n<p>{escape(self.about_model)}</p>\n<h2>Try it</h2>\n{tries}"
            '<p><a href="/docs">/docs</a> describes every request and answer, '
            '<a href="/openapi.json">/openapi.json</a> does so for programs.</p>\n'
            f"<h2>Go on with engines</h2>\n<pre>{escape(ON_WITH_ENGINES)}</pre>\n</body></html>\n"
        )

    async def page(self, _: Request) -> HTMLResponse:
        return HTMLResponse(self.html, headers={"Content-Security-Policy": ONLY_OUR_STYLE})

    def _post(self, path: str, header: str = "", **body: object) -> str:
        given = shlex.quote(json.dumps(body))
        parts = ("curl -s", f"{self.address}{path}", header, "-H 'Content-Type: application/json' -d", given)
        return " ".join(part for part in parts if part)
