"""The requests of the recording: every capability, in each of its modes, with the queries of the golden set."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, product
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
ITEM: Json = {"server": "harbor_files", "name": "count_lines", "description": "Count the lines of a file"}
JOB: Json = {"source": "recorded", "items": [ITEM]}
SKILL: Json = {"id": "line_counting", "name": "Line counting", "description": "Counts lines of files"}
RULE: Json = {"kind": "synonym", "words": ["tally"], "means": ["count"]}


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
        parameters: Json = {"q": text, "kind": kind, "limit": 10, "threshold": 0}
        yield Asked("gateway", "/search", parameters=parameters)
        yield Asked("gateway", "", tool="search_tools", body={"query": text})
    for path in (
        "/health",
        "/runtime/tools.ts",
        "/api/v1/tools",
        "/api/v1/servers",
        "/livez",
    ):
        yield Asked("gateway", path)
    for number, (tool, item) in enumerate(zip(tools(), items(), strict=True)):
        yield Asked("gateway", f"/api/v1/tools/{tool}")
        yield Asked("gateway", "", tool="describe_tool", body={"tools": [tool]})
        # Every fourth call lacks what the tool requires.
        arguments: Json = arguments_of(item) if number % 4 else {"limit": number}
        yield Asked("gateway", f"/tools/{tool}", "POST", arguments)
        yield Asked("gateway", "", tool="call_tool", body={"tool": tool, "arguments": arguments})
    for tool in ("call_tool", "call_destructive_tool", "describe_tool"):
        yield Asked("gateway", "", tool=tool, body={"tool": "no__such_tool"})
    yield Asked("gateway", "", tool="get_prompt", body={"prompt": "no__such_prompt"})
    yield Asked("gateway", "", tool="read_resource", body={"uri": "file:///no/such/resource"})
    yield Asked("gateway", "", tool="read_result", body={"id": "no_such_result"})
    yield Asked("gateway", "/tools/no__such_tool", "POST", {})
    yield Asked("gateway", "/nothing/here")


def catalog() -> Iterator[Asked]:
    """Yield searches of tools in every strategy and type, of skills, and lists by pages."""
    for text, (strategy, search_type) in _twice([(strategy, of) for strategy in STRATEGIES for of in TYPES]):
        body: Json = {"query": text, "strategy": strategy, "search_type": search_type, "explain": True}
        yield Asked("tools", "/api/v1/search", "POST", body)
    for text, preset in zip(queries(), cycle(("balanced", "precision", "recall")), strict=False):
        yield Asked("tools", "/api/v1/search", "POST", {"query": text, "preset": preset, "limit": 10})
        yield Asked("tools", "", tool="search_tools", body={"query": text})
    for text, search_type in zip(queries(), cycle(TYPES), strict=False):
        parameters = {"query": text, "search_type": search_type}
        yield Asked("skills", "/api/v1/search/skills", parameters=parameters)
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
    # A catalog numbers its tools.
    for tool in range(1, len(items()) + 1):
        yield Asked("catalog", f"/api/v1/tools/{tool}")
        yield Asked("catalog", f"/api/v1/tools/{tool}/skills")
    for skill in skills():
        yield Asked("skills", f"/api/v1/skills/{skill}")
        yield Asked("skills", f"/api/v1/skills/{skill}/tools", parameters={"limit": 3})
        yield Asked(
            "skills", "/api/v1/search/tools", parameters={"query": "list what is there", "skill_ids": skill}
        )
    yield from (Asked("catalog", path) for path in ("/livez", "/readyz", "/search/health", "/nothing/here"))


def changes() -> Iterator[Asked]:
    """Yield what changes a catalog, or is refused: one after the other, after all searches."""
    yield from _refused()
    yield Asked("changes", "/api/v1/skills", "POST", SKILL)
    # A second time it is there.
    yield Asked("changes", "/api/v1/skills", "POST", {**SKILL, "keywords": ["lines"]})
    edits: Sequence[Json] = ({"description": "Counts the lines of a text"}, {"is_active": False}, {"name": ""}, {})
    for body in edits:
        yield Asked("changes", "/api/v1/skills/line_counting", "PATCH", body)
    yield Asked("changes", "/api/v1/skills/no_such_skill", "PATCH", {"is_active": True})
    for tool, skill in product((1, 2, 999_999), ("line_counting", "no_such_skill")):
        yield Asked("changes", f"/api/v1/tools/{tool}/skills", "PUT", {"skill_ids": [skill]})
        yield Asked("changes", f"/api/v1/tools/{tool}/skills", "DELETE", parameters={"after": skill})
    for path in ("tools/999999", "sources/no_such_source", "curation/999999"):
        yield Asked("changes", f"/api/v1/{path}", "DELETE")
    for of, action in product(("changes", "suggestions"), ("approve", "reject")):
        yield Asked("changes", f"/api/v1/{of}/999999/{action}", "POST", {})
    yield Asked("changes", "/api/v1/skills/line_counting")
    yield Asked("changes", "/api/v1/jobs", "POST", JOB)


def _refused() -> Iterator[Asked]:
    """Yield requests that lack a field, or have one of another type, or one too many."""
    for path, body in (("jobs", JOB), ("skills", SKILL), ("curation", RULE)):
        for name in body:
            without = {other: value for other, value in body.items() if other != name}
            yield Asked("changes", f"/api/v1/{path}", "POST", without | {"no_such_field": 1})
            yield Asked("changes", f"/api/v1/{path}", "POST", {**body, name: {"of": "another type"}})
    for text in ("", "x" * 20_000, "\u0000"):
        yield Asked("changes", "/api/v1/jobs", "POST", {**JOB, "items": [{**ITEM, "name": text}]})
        yield Asked("changes", "/api/v1/skills", "POST", {**SKILL, "name": text})


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
        yield Asked("documents", "/search", "POST", body)
    for text in queries():
        yield Asked("documents", "/search", "POST", {"query": text, "top_k": 4})
        yield Asked("documents", "", tool="search_documents", body={"query": text})
    for item in items()[:40]:
        yield Asked("documents", f"/api/v1/documents/{item['id']}")
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
    yield ("call", tools()[0], json.dumps(arguments_of(items()[0])))
    yield ("call", tools()[0], "{}")
    yield ("call", "no__such_tool", "{}")
    yield from (("rules", "list"), ("review", "list"), ("secrets", "list"), ("gateway", "clients"), ("doctor",))


def service_commands() -> Iterator[tuple[str, ...]]:
    """Yield commands of the service with `--json`."""
    for text, more in zip(queries()[:16], cycle(((), ("--explain",), ("--limit", "7"))), strict=False):
        yield ("tools", "search", text, *more)
    for of in ("tools", "skills", "sources", "changes", "library"):
        yield (of, "list")
    yield from (("tools", command) for command in ("gaps", "searches", "curation"))
    for tool in ("1", "999999", "no__such_tool"):
        yield from ((("tools", "show", tool)), ("tools", "skills", tool))
    for skill in (skills()[0], "no_such_skill"):
        yield ("skills", "show", skill)
    yield ("skills", "suggestions")


def _twice(modes: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Yield each query in two of the modes."""
    for again in (0, 1):
        yield from ((text, modes[(number + again) % len(modes)]) for number, text in enumerate(queries()))


def items() -> list[Json]:
    return [json.loads(line) for line in (GOLDEN / "tools.jsonl").read_text("utf-8").splitlines() if line.strip()]


def tools() -> list[str]:
    """Return the items by their names in a gateway, whose servers have no spaces in their names."""
    return [str(item["id"]).replace(" ", "-") for item in items()]


def skills() -> list[str]:
    lines = (GOLDEN / "skills.jsonl").read_text("utf-8").splitlines()
    return sorted({str(skill) for line in lines if line.strip() for skill in json.loads(line)["skill_ids"]})


def arguments_of(item: Json) -> Json:
    """Return a value for each argument that a tool requires."""
    schema = item.get("input_schema")
    assert isinstance(schema, dict)
    values = {"integer": 3, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return {
        name: next(iter(of.get("enum", ())), values.get(of.get("type"), "2026-11-20"))
        for name, of in schema.get("properties", {}).items()
        if name in schema.get("required", ())
    }


def servers() -> list[str]:
    return sorted({str(item["server"]) for item in items()})
