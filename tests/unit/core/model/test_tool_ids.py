"""Names of tools across servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import is_allowed, split_tool_id, tool_id
from toolscript.core.text import readable

pytestmark = pytest.mark.requirement("TS-010")

Servers = st.from_regex(r"(?!.*__)[A-Za-z0-9_.-]{0,10}[A-Za-z0-9.-]", fullmatch=True)


@given(Servers, st.text(min_size=1))
def test_an_id_is_split_into_server_and_name(server: str, name: str) -> None:
    assert split_tool_id(tool_id(server, name)) == (server, readable(name))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("files__read_file", ("files", "read_file")),
        ("a__b__c", ("a", "b__c")),
        ("a____b", ("a", "__b")),
        ("mcp__toolscript__files__read", ("files", "read")),
        ("mcp__other__files__read", ("mcp", "other__files__read")),
        ("a__\ud800", ("a", "\ufffd")),
    ],
)
def test_an_id_is_split_at_the_first_separator(text: str, parts: tuple[str, str]) -> None:
    assert split_tool_id(text) == parts


@pytest.mark.parametrize("text", ["", "read_file", "a_b", "__", "__tool", "server__", "mcp__toolscript__read"])
def test_an_invalid_id_is_refused_with_the_correct_form(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not the name of a tool") as refused:
        split_tool_id(text)
    assert "server__tool" in refused.value.hint


def test_a_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidRequest) as refused:
        split_tool_id("x" * 10_000)
    assert len(refused.value.message) < 300


def test_a_filter_accepts_servers_and_tools() -> None:
    assert is_allowed("files", "read", ())
    assert is_allowed("files", "read", ("files",))
    assert is_allowed("files", "read", ("mail", "files__read"))
    assert not is_allowed("files", "read", ("mail", "files__write", "read", "file"))
