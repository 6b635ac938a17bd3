"""Names of servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.items import split_tool_id, tool_id
from toolscript.gateway.config.problems import is_server_name, nearest_name, with_suffix

pytestmark = pytest.mark.requirement("TS-001")

NAMES = st.text() | st.text(alphabet="aB1_.- ", max_size=80)


@given(NAMES)
def test_the_nearest_name_of_anything_is_allowed_and_an_allowed_name_stays(name: str) -> None:
    assert is_server_name(nearest_name(name))
    assert not is_server_name(name) or nearest_name(name) == name


@given(NAMES, st.sampled_from(["cursor", "claude-desktop-12"]))
def test_a_suffix_is_never_cut(name: str, suffix: str) -> None:
    named = with_suffix(nearest_name(name), suffix)
    assert is_server_name(named)
    assert named.endswith(f"-{suffix}")


@given(NAMES.map(nearest_name), st.text(alphabet="abc_-", min_size=1))
def test_an_allowed_name_is_found_again_in_the_name_of_every_tool(server: str, tool: str) -> None:
    assert split_tool_id(tool_id(server, tool)) == (server, tool)
