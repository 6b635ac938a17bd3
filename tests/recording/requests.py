"""The requests of the recording: every capability, in each of its modes, with the queries of the golden set."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TypeVar

GOLDEN = Path(__file__).parents[1] / "golden"

Json = dict[str, object]
T = TypeVar("T")
TYPES = ("hybrid", "keyword", "semantic")
STRATEGIES = ("direct", "hierarchical", "hybrid")
# Requests that are to be refused, or are at an edge.
ODD = (
    "",
    " ",
    "x",
    "?!",
    "a" * 3_000,
    "\u0000",
    "schnell eine Datei lesen",
    "読む",
    "help",
    "open a PR; then close it",
)


@dataclass(frozen=True)
class Asked:
    """A request by HTTP, or to a tool over MCP where `tool` is named. `of` is the part that is asked."""

    of: str
    path: str
    method: str = "GET"
    body: Json | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    tool: str = ""

    @property
    def name(self) -> str:
        said = json.dumps(self.body if self.body is not None else dict(self.parameters), sort_keys=True)
        return " ".join(filter(None, (self.of, self.method if self.path else "mcp", self.path or self.tool, said)))


def queries() -> list[str]:
    lines = (GOLDEN / "queries.jsonl").read_text("utf-8").splitlines()
    return [*(str(json.loads(line)["text"]) for line in lines if line.strip()), *ODD]


def gateway() -> Iterator[Asked]:
    """Yield searches by HTTP and over MCP, lists, definitions, and calls."""
    for text, search_type in _twice(TYPES):
        yield Asked("gateway", "/search", parameters={"q": text, "search_type": search_type, "explain": 1})
    for text, kind in zip(queries(), cycle(("tool", "prompt", "any")), strict=False):
        body: Json = {"query": text, "kind": kind, "limit": 10, "threshold": 0}
        yield Asked("gateway", "/api/v1/tools/search", "POST", body)
        yield Asked("gateway", "", tool="search_tools", body={"query": text})
    for path in (
        "/health",
        "/servers",
        "/tools",
        "/runtime/tools.ts",
        "/api/v1/tools",
        "/api/v1/servers",
        "/livez",
    ):
        yield Asked("gateway", path)
    for number, tool in enumerate(tools()[:60]):
        yield Asked("gateway", f"/api/v1/tools/{tool}")
        yield Asked("gateway", "", tool="describe_tool", body={"tools": [tool]})
        arguments: Json = {} if number % 3 else {"path": "notes.txt", "limit": number}
        yield Asked("gateway", f"/tools/{tool}", "POST", arguments)
        yield Asked("gateway", "", tool="call_tool", body={"name": tool, "arguments": arguments})
    yield Asked("gateway", "/tools/no__such_tool", "POST", {})
    yield Asked("gateway", "/nothing/here")


def catalog() -> Iterator[Asked]:
    """Yield searches of tools in every strategy and type, of skills, and lists by pages."""
    for text, (strategy, search_type) in _twice([(strategy, of) for strategy in STRATEGIES for of in TYPES]):
        body: Json = {"query": text, "strategy": strategy, "search_type": search_type, "explain": True}
        yield Asked("tools", "/api/v1/tools/search", "POST", body)
    for text, preset in zip(queries(), cycle(("balanced", "precision", "recall")), strict=False):
        yield Asked("tools", "/api/v1/search", "POST", {"query": text, "preset": preset, "limit": 10})
        yield Asked("tools", "", tool="search_tools", body={"query": text})
    for text, search_type in zip(queries(), cycle(TYPES), strict=False):
        yield Asked("skills", "/api/v1/skills/search", "POST", {"query": text, "search_type": search_type})
    yield from (Asked("skills", "/api/v1/search/skills", parameters={"query": text}) for text in queries()[:60])
    yield from (Asked("tools", "/api/v1/search/tools", parameters={"query": text}) for text in queries()[:60])
    for path in (
        "skills",
        "tools",
        "sources",
        "jobs",
        "suggestions",
        "changes",
        "audit",
        "curation",
        "tool_searches",
    ):
        yield Asked("catalog", f"/api/v1/{path}")
        yield Asked("catalog", f"/api/v1/{path}", parameters={"limit": 2})
        yield Asked("catalog", f"/api/v1/{path}", parameters={"limit": -1})
        yield Asked("catalog", f"/api/v1/{path}/999999")
    yield from (Asked("catalog", path) for path in ("/livez", "/readyz", "/search/health", "/nothing/here"))


def documents() -> Iterator[Asked]:
    """Yield searches of a tenant's documents in every type, with filters, by pages and with snippets."""
    for number, (text, search_type) in enumerate(_twice(TYPES)):
        body: Json = {"query": text, "search_type": search_type, "limit": 3 + number % 5}
        if number % 4 == 1:
            body["filters"] = {"must": [{"field": "server", "op": "eq", "value": servers()[number % 5]}]}
        if number % 4 == 2:
            body |= {"include_snippets": True, "metadata_fields": ["server"]}
        if number % 4 == 3:
            body["offset"] = 2
        yield Asked("documents", "/api/v1/documents/search", "POST", body)
    for text in queries():
        yield Asked("documents", "/search", "POST", {"query": text, "limit": 4})
        yield Asked("documents", "", tool="search_documents", body={"query": text})
    yield from (Asked("documents", f"/api/v1/documents/{tool}") for tool in tools()[:40])
    yield Asked("documents", "/api/v1/documents", parameters={"limit": 50})


def knowledge() -> Iterator[Asked]:
    for text, search_type in _twice(TYPES):
        body: Json = {"query": text, "search_type": search_type, "limit": 4}
        yield Asked("knowledge", "/api/v1/knowledge/search", "POST", body)
    for text in queries():
        yield Asked("knowledge", "/search_knowledge", "POST", {"query": text})
        yield Asked("knowledge", "", tool="search_knowledge", body={"query": text})
    yield from (Asked("knowledge", path) for path in ("/sources", "/api/v1/knowledge/sources"))


def commands() -> Iterator[tuple[str, ...]]:
    """Yield commands of the gateway with `--json`."""
    for text, more in zip(
        queries()[:40], cycle(((), ("--explain",), ("--limit", "7", "--kind", "any"))), strict=False
    ):
        yield ("search", text, *more)
    yield from (("tools", "list"), ("servers", "list"), ("doctor",), ("describe", tools()[0]))


def _twice(modes: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Yield each query in two of the modes."""
    for again in (0, 1):
        yield from ((text, modes[(number + again) % len(modes)]) for number, text in enumerate(queries()))


def items() -> list[Json]:
    return [json.loads(line) for line in (GOLDEN / "tools.jsonl").read_text("utf-8").splitlines() if line.strip()]


def tools() -> list[str]:
    """Return the items by their names in a gateway, whose servers have no spaces in their names."""
    return [str(item["id"]).replace(" ", "-") for item in items()]


def servers() -> list[str]:
    return sorted({str(item["server"]) for item in items()})
