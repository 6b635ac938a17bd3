"""No advice for a terminal reaches an agent: of all messages that this package has."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolscript
from toolscript.core.errors import NotReady, ServerUnavailable
from toolscript.gateway.mcp.wording import FOR_A_PERSON, failed, for_agent
from toolscript.gateway.model import HOW_TO_GET_SERVERS

pytestmark = pytest.mark.requirement("TS-010")

PACKAGE = Path(toolscript.__file__).parent
# What a gateway, its connections, its models and its client say. Commands have their own words, for people.
SAYING = ("gateway", "core", "client")


def _literal(node: ast.expr) -> str:
    """Return a text of the source; what is filled in is a word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "word"
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    return ""


def messages() -> Iterator[str]:
    """Yield every text that looks like a sentence: hints, messages, notes, and what they are made of."""
    for folder in SAYING:
        for file in (PACKAGE / folder).rglob("*.py"):
            tree = ast.parse(file.read_text("utf-8"))
            docstrings = {
                id(node.body[0].value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in docstrings:
                    text = _literal(node)
                    if " " in text:
                        yield text


def test_no_message_of_the_package_advises_an_agent_to_use_a_terminal() -> None:
    said = {*messages()}
    for_people = [text for text in said if FOR_A_PERSON.search(text)]
    assert len(said) > 1_000
    assert len(for_people) > 50
    left = [text for text in said if FOR_A_PERSON.search(for_agent(text))]
    assert left == []


@given(
    st.lists(
        st.sampled_from(
            ["`toolscript doctor`", "a clause", "use --threshold 0.1", "(in ~/.toolscript.json)", "; "]
        )
    )
)
def test_whatever_they_are_joined_to(parts: list[str]) -> None:
    assert not FOR_A_PERSON.search(for_agent(" ".join(parts)))


def test_what_only_the_user_can_do_is_asked_of_the_user() -> None:
    assert for_agent(f"no server offers anything yet: {HOW_TO_GET_SERVERS}") == (
        "no server offers anything yet: ask the user to connect some"
    )
    down = ServerUnavailable("the server x has failed: it fell", hint="`toolscript doctor` says how to fix it")
    assert failed(down).content[0]["text"] == "the server x has failed: it fell. ask the user to repair it"
    how = "a person must review it: `toolscript trust '/a'` in a terminal"
    trust = f"the servers of '/a b/.toolscript.json' are left out: {how}"
    assert "ask the user to review and trust" in for_agent(trust)
    assert not FOR_A_PERSON.search(for_agent(trust))


def test_an_agent_whose_call_took_too_long_is_told_what_it_can_do() -> None:
    hint = "it may still be running; raise callTimeout of files, or ask for less"
    assert for_agent(hint) == "it may still be running; ask for less"


def test_other_notes_of_a_hint_stay() -> None:
    note = "keyword search only: pip install 'toolscript[model]' helps; --model builtin hides this"
    assert for_agent(f"{note}; not searched: mail (why)") == "keyword search only; not searched: mail (why)"
    assert for_agent("not searched: a (it died; tried 3 min ago, `search --refresh` tries again)") == (
        "not searched: a (it died; tried 3 min ago)"
    )


def test_a_message_for_agents_stays_as_it_is() -> None:
    for text in (
        "try other words, or a lower threshold",
        "may have had its effect; check it",
        "npx: unknown --flag",
    ):
        assert for_agent(text) == text
    assert failed(NotReady("not ready", hint="try again")).content[0]["text"] == "not ready. try again"


def test_a_bracket_whose_beginning_is_gone_is_closed_by_none() -> None:
    text = "ranked by the built-in model: it was not downloaded; toolscript setup does)"
    assert for_agent(text).count("(") == for_agent(text).count(")")
