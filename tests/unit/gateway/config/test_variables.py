"""Variables in texts of a config file."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolscript.gateway.config.variables import Surroundings, fill

pytestmark = pytest.mark.requirement("TS-001")

ENVIRONMENT = {"A": "alpha", "B": "beta", "EMPTY": "", "TRAP": "${A} $${A} }", "HOME": "/h"}
HERE = Surroundings(ENVIRONMENT, Path("/p/app"))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PLAIN = st.text(alphabet=st.characters(exclude_characters="${}", exclude_categories=["Cs"]))


FILLED: list[tuple[str, str]] = [
    ("${A}", "alpha"),
    ("<${A}-${B}>", "<alpha-beta>"),
    ("${env:A}", "alpha"),
    ("${A:-x}", "alpha"),
    ("${NO:-x}", "x"),
    ("${NO:-}", ""),
    ("${EMPTY}", ""),
    ("${EMPTY:-x}", "x"),
    ("${env:NO:-x}", "x"),
    ("${NO:-${B}}", "beta"),
    ("${NO:-${NEITHER:-z}}/end", "z/end"),
    ("${A:-${NO}}", "alpha"),
    ('${NO:-{"a": {}}}', '{"a": {}}'),
    ('${A:-{"a": {}}}!', "alpha!"),
    ("$A $ {A} $", "$A $ {A} $"),
    ("$${A}", "${A}"),
    ("a$${A}${A}", "a${A}alpha"),
    ("${NO:-$${A}}", "${A}"),
    ("${TRAP}", "${A} $${A} }"),
    ("${workspaceFolder}/x", "/p/app/x"),
    ("${workspaceFolderBasename}", "app"),
    ("${userHome}${/}x${pathSeparator}", "/h/x/"),
]


def test_variables_are_filled_in(subtests: pytest.Subtests) -> None:
    for text, filled in FILLED:
        with subtests.test(text=text, filled=filled):
            assert fill(text, HERE) == (filled, [])


def test_a_variable_that_is_not_set_is_named_with_a_way_to_set_it() -> None:
    _, findings = fill("x ${GITHUB_TOKEN} ${env:OTHER}", HERE)
    assert [finding.message for finding in findings] == [
        "needs the variable GITHUB_TOKEN, which is not set",
        "needs the variable OTHER, which is not set",
    ]
    assert "export GITHUB_TOKEN=" in findings[0].fix
    assert "${GITHUB_TOKEN:-" in findings[0].fix


def test_an_input_of_vs_code_is_reported_with_a_variable_to_set() -> None:
    _, [finding] = fill("${input:api-key}", HERE)
    assert "'api-key'" in finding.message
    assert "${API_KEY}" in finding.fix


@pytest.mark.parametrize(
    "text", ["${", "a ${A", "${A:-${B}", "${}", "${A B}", "${A-x}", "${config:x}", "${1}", "${:-}${"]
)
def test_an_invalid_variable_is_reported(text: str) -> None:
    _, findings = fill(text, HERE)
    assert findings


def test_no_message_quotes_the_text_around_a_variable() -> None:
    for text in ("hunter2${oops oops}", "hunter2${A", "${input:hunter2 x}", "hunter2${NO}"):
        _, findings = fill(text, HERE)
        assert findings
        assert "hunter2" not in "".join(finding.message + finding.fix for finding in findings)


def test_a_missing_home_folder_is_reported() -> None:
    _, [finding] = fill("${userHome}", Surroundings({}, Path("/p")))
    assert "userHome" in finding.message


@pytest.mark.parametrize("levels", [100, 20_000])
def test_defaults_without_end_are_refused(levels: int) -> None:
    _, findings = fill("${NO:-" * levels + "x" + "}" * levels, HERE)
    assert findings


@given(st.lists(st.tuples(PLAIN, NAMES), max_size=6), PLAIN, st.text())
def test_every_variable_becomes_its_value_and_all_else_stays(
    parts: list[tuple[str, str]], end: str, value: str
) -> None:
    surroundings = Surroundings({name: value for _, name in parts}, Path("/p"))
    text = "".join(f"{plain}${{{name}}}" for plain, name in parts) + end
    assert fill(text, surroundings) == ("".join(plain + value for plain, _ in parts) + end, [])


@given(NAMES, PLAIN, st.none() | st.text())
def test_a_default_counts_exactly_when_the_variable_is_unset_or_empty(
    name: str, default: str, value: str | None
) -> None:
    surroundings = Surroundings({} if value is None else {name: value}, Path("/p"))
    assert fill(f"${{{name}:-{default}}}", surroundings) == (value or default, [])


@given(st.text())
@example("$${${A}")
def test_escaped_text_comes_out_as_it_was(text: str) -> None:
    escaped = text.replace("${", "$${")
    if "$$$" not in escaped:
        assert fill(escaped, HERE) == (text, [])


@given(st.text(alphabet="${}:-AB_env input"))
def test_any_text_is_expanded_or_reported(text: str) -> None:
    filled, findings = fill(text, HERE)
    assert findings or isinstance(filled, str)
    if "${" not in text:
        assert (filled, findings) == (text, [])
