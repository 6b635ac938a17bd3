"""Types for a model to read: fewer tokens than the schema, and nothing that runs."""

import json

import pytest

from toolscript.core.items import Item, ItemKind
from toolscript.core.tokens import o200k_tokens
from toolscript.gateway.typescript.declarations import tool_declarations

pytestmark = pytest.mark.requirement("TS-009")

TEXTS = {"type": "array", "items": {"type": "string"}}
# That of the GitHub server, as it is.
CREATE_ISSUE = {
    "type": "object",
    "properties": {
        "owner": {"type": "string"},
        "repo": {"type": "string"},
        "title": {"type": "string"},
        "body": {"type": "string"},
        "assignees": TEXTS,
        "milestone": {"type": "number"},
        "labels": TEXTS,
    },
    "required": ["owner", "repo", "title"],
    "additionalProperties": False,
    "$schema": "http://json-schema.org/draft-07/schema#",
}


def tool(name: str, description: str = "", **more: object) -> Item:
    return Item(f"github__{name}", ItemKind.TOOL, "github", name, description, **more)  # type: ignore[arg-type]


def test_the_types_of_a_real_tool_cost_less_than_its_schema() -> None:
    item = tool("create_issue", "Create a new issue in a GitHub repository", input_schema=CREATE_ISSUE)
    types, count = tool_declarations([item]), o200k_tokens()
    arguments = "owner: string; repo: string; title: string; body?: string; assignees?: string[]"
    assert types.splitlines() == [
        "/** Create a new issue in a GitHub repository */",
        f"github__create_issue(params: {{ {arguments}; milestone?: number; labels?: string[] }})",
    ]
    assert count(types) <= 0.6 * count(json.dumps(CREATE_ISSUE, separators=(",", ":")))


def test_results_and_shared_types_are_declared_and_nothing_runs() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    types = tool_declarations(
        [tool("walk", input_schema=node, output_schema={"properties": {"n": {"type": "number"}}})]
    )
    assert types.startswith("interface GithubWalkParams { next?: GithubWalkParams }\n")
    assert types.endswith("github__walk(params?: GithubWalkParams): { n?: number }")
    assert "callTool" not in types


def test_a_description_stays_a_comment_of_one_line() -> None:
    types = tool_declarations([tool("x", "One */ two\nthree\u202e")])
    assert types.splitlines() == ["/** One *\\/ two */", "github__x(params?: { [key: string]: unknown })"]
