"""Many queries at once: lines of text or JSON, and errors with the line number."""

import pytest

from toolscript.cli.search import queries_of
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import ItemKind
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-002")

USUAL = LocalQuery("-", 7, 0.4, ItemKind.PROMPT)


def read(*lines: str) -> list[LocalQuery]:
    return list(queries_of(lines, USUAL))


def test_each_line_is_a_query_with_the_default_limits() -> None:
    assert read("read a file\n", "  send mail \n") == [
        LocalQuery("read a file", 7, 0.4, ItemKind.PROMPT),
        LocalQuery("send mail", 7, 0.4, ItemKind.PROMPT),
    ]


def test_blank_lines_are_skipped() -> None:
    assert [query.text for query in read("", "\n", " \t\n", "x\n", "\r\n")] == ["x"]


def test_a_json_line_may_set_limit_threshold_and_search_type() -> None:
    assert read('{"query": "a", "limit": 2, "threshold": 0}', '{"query": "b"}') == [
        LocalQuery("a", 2, 0.0, ItemKind.PROMPT),
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
    ],
    ids=lambda line: line[:24],
)
def test_an_invalid_line_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(InvalidRequest, match="line 3") as refused:
        read("fine", "", line)
    assert '{"query"' in refused.value.hint


def test_text_in_other_brackets_is_a_query() -> None:
    assert [query.text for query in read("[1]", '"quoted"')] == ["[1]", '"quoted"']
