"""Many queries at once: lines of text or JSON, and errors with the line number."""

import pytest

from toolscript.cli.search import BadLine, queries_of
from toolscript.core.items import ItemKind
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-002")

USUAL = LocalQuery("-", 7, 0.4, ItemKind.PROMPT)


def read(*lines: str) -> list[LocalQuery]:
    return [query for query in queries_of(lines, USUAL) if isinstance(query, LocalQuery)]


def test_each_line_is_a_query_with_the_default_limits() -> None:
    assert read("read a file\n", "  send mail \n") == [
        LocalQuery("read a file", 7, 0.4, ItemKind.PROMPT),
        LocalQuery("send mail", 7, 0.4, ItemKind.PROMPT),
    ]


def test_blank_lines_are_skipped() -> None:
    assert [query.text for query in read("", "\n", " \t\n", "x\n", "\r\n")] == ["x"]


def test_a_json_line_may_set_limit_threshold_kind_and_search_type() -> None:
    assert read('{"query": "a", "limit": 2, "threshold": 0, "kind": "tool"}', '{"query": "b"}') == [
        LocalQuery("a", 2, 0.0, ItemKind.TOOL),
        LocalQuery("b", 7, 0.4, ItemKind.PROMPT),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "{}",
        '{"limit": 3}',
        '{"query": null}',
        '{"query": 5}',
        '{"query": ["x"]}',
        '{"query": " "}',
        '{"query": "x", "limit": "many"}',
        '{"query": "x", "limit": 0}',
        '{"query": "x", "limit": null}',
        '{"query": "x", "limit": 1e999}',
        '{"query": "x", "threshold": 2}',
        '{"query": "x", "threshold": NaN}',
        '{"query": "x", "threshold": []}',
        '{"a":' * 50_000,
        "x" * 1001,
        '{"query": "x", "limt": 3}',
        '{"query": "x", "kind": "servers"}',
    ],
    ids=lambda line: line[:24],
)
def test_an_invalid_line_is_refused_with_its_number_and_the_others_are_queries(line: str) -> None:
    first, bad, last = queries_of(("fine", "", line, "as well"), USUAL)
    assert isinstance(bad, BadLine)
    assert bad.number == 3
    assert bad.error.message.startswith("line 3 is not a query")
    assert '{"query"' in bad.error.hint
    assert [getattr(query, "text", "") for query in (first, last)] == ["fine", "as well"]


def test_a_key_that_does_not_exist_is_named() -> None:
    (bad,) = queries_of(['{"query": "x", "limt": 3}'], USUAL)
    assert isinstance(bad, BadLine)
    assert "no field 'limt'" in bad.error.message


def test_text_in_other_brackets_is_a_query() -> None:
    assert [query.text for query in read("[1]", '"quoted"')] == ["[1]", '"quoted"']
