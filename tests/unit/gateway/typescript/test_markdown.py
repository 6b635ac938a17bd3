"""A search answer as Markdown: no text breaks out of the table or the code fence."""

import pytest

from tests.unit.gateway.typescript.schema_cases import TEXT, obj
from tests.unit.gateway.typescript.test_module import READ, READ_FILE
from tests.unit.gateway.typescript.tools import tool
from toolscript.gateway.typescript.markdown import client_usage, fenced, search_preamble, types_document
from toolscript.gateway.typescript.module import typescript_module

pytestmark = pytest.mark.requirement("TS-009")

ROWS = [
    ("desktop-commander__read_file", 0.92, "Semantic similarity (file operations)"),
    ("filesystem__read", 0.851, "Fuzzy match + domain boost"),
]
PREAMBLE = """\
## Search Results

| Tool | Confidence | Reason |
|------|-----------|--------|
| desktop-commander__read_file | 0.92 | Semantic similarity (file operations) |
| filesystem__read | 0.85 | Fuzzy match + domain boost |
"""
USAGE = """\
import { tools } from "toolscript";

// Call tools using the generated client
const result = await tools.desktopCommander.read_file({ path: "..." });
"""


def test_the_table_has_a_row_for_each_tool() -> None:
    assert search_preamble(ROWS) == PREAMBLE


def test_text_cannot_break_out_of_its_cell() -> None:
    lines = search_preamble([("a|b`c", 1.0, "x\n\n```\n# evil <b>\u2028[l](u) \\| *\0")]).splitlines()
    assert lines[4:] == ["| a\\|b\\`c | 1.00 | x \\`\\`\\` # evil \\<b\\> \\[l\\](u) \\\\\\| \\* |"]


def test_the_example_calls_the_first_tool_with_what_it_requires() -> None:
    assert client_usage([READ_FILE, READ]) == USAGE


def test_the_example_calls_a_tool_that_requires_nothing_with_nothing() -> None:
    assert "await tools.s.t();" in client_usage([tool(obj(a=TEXT))])
    assert 'await tools.s["a-b"]();' in client_usage([tool(name="a-b")])


def test_without_a_tool_there_is_no_example() -> None:
    assert client_usage([]) == ""


def test_a_fence_is_longer_than_any_within() -> None:
    assert fenced("a") == "```typescript\na\n```\n"
    assert fenced("/* ```` */") == "`````typescript\n/* ```` */\n`````\n"


def test_the_document_is_the_table_the_module_and_the_example() -> None:
    hostile = tool(description="````\n# Not a heading\n````")
    module = typescript_module([READ_FILE, hostile])
    document = types_document(ROWS, module, client_usage([READ_FILE]))
    fence = "`" * 5
    assert document == (
        f"{PREAMBLE}\n{fence}typescript\n{module}{fence}\n\nUsage example:\n```typescript\n{USAGE}```\n"
        "\n`toolscript get-types > toolscript.ts` saves such a module; import it as `./toolscript.ts` where "
        "`toolscript` is mapped to nothing.\n"
    )
