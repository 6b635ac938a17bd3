"""General tools: recognition, capabilities, and how they rank."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import (
    BASH,
    GIT_COMMIT,
    ITEMS,
    READ_FILE,
    item,
    names,
    search_all,
    search_over,
)
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.capabilities import LIKELY, SURE, Capabilities, capabilities_of, default_capabilities
from toolscript.gateway.index import name_parts
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-004")

TABLE = """
[general.robot]
names = ["arm", "Robot hand"]
does = ["lifting"]
[capability.lifting]
says = "lifting things"
surely = ["hoist"]
perhaps = ["lift", "carry", "heavy"]
"""
GIT_QUERY = "commit my changes to git"


def robot() -> Capabilities:
    return capabilities_of(TABLE)


def inferred_for(text: str, capabilities: Capabilities | None = None) -> dict[str, tuple[float, str]]:
    """Map each kind of general tool to its confidence and capability."""
    matches = (capabilities or default_capabilities()).asked_by(text.split())
    return {general.kind: (inferred.confidence, inferred.capability) for general, inferred in matches}


def test_a_table_is_read_as_it_is_written() -> None:
    (general,) = robot().general
    assert (general.kind, general.does) == ("robot", ("lifting",))
    assert general.includes(frozenset({"arm", "run"}), frozenset())
    assert general.includes(frozenset({"robot", "hand"}), frozenset({"any"}))
    assert not general.includes(frozenset({"robot"}), frozenset())
    assert not general.includes(frozenset({"arm", "history"}), frozenset({"arm"}))


def test_all_tools_of_a_listed_server_are_general() -> None:
    shell = next(general for general in default_capabilities().general if general.kind == "shell")
    assert shell.includes(frozenset({"cat"}), frozenset({"shell"}))
    assert shell.includes(name_parts("runShell_command"), frozenset({"desktop"}))
    assert not shell.includes(name_parts("shell_whereis"), frozenset({"desktop"}))


@pytest.mark.parametrize(
    ("text", "strength"),
    [
        ("hoist heavy", SURE),
        ("hoist", LIKELY),
        ("lift heavy", LIKELY),
        ("lift", 0.0),
        ("lifting carried", LIKELY),
        ("hoist one two three", 0.0),
        ("nothing of this", 0.0),
    ],
)
def test_one_sure_word_or_two_likely_ones_are_enough(text: str, strength: float) -> None:
    assert inferred_for(text, robot()) == ({"robot": (strength, "lifting things")} if strength else {})


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("commit changes git", "git operations"),
        ("npm install", "package management"),
        ("kill process", "process management"),
        ("ping host", "network operations"),
        ("delete folder", "file operations"),
        ("unzip archive", "archives"),
    ],
)
def test_a_shell_has_the_capabilities_it_implies(text: str, capability: str) -> None:
    assert inferred_for(text)["shell"][1] == capability


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[general", "cannot be read"),
        ("", "cannot be read"),
        ("[general]\n", "cannot be read"),
        (TABLE.replace("[capability.lifting]", "[capability.other]"), r"no \[capability\.lifting\]"),
        (TABLE.replace('does = ["lifting"]', ""), "cannot be read"),
        (TABLE.replace('surely = ["hoist"]', 'surely = "hoist"'), "list"),
        (TABLE.replace('names = ["arm", "Robot hand"]', 'names = "arm"'), "list"),
        (TABLE.replace('does = ["lifting"]', 'does = "lifting"'), "list"),
        (TABLE.replace('"arm", ', '"", '), "no word"),
        (TABLE.replace('"arm", ', '"!?", '), "no word"),
        ("general = 3\n[capability.lifting]\nsays='x'\nsurely=[]\nperhaps=[]\n", "cannot be read"),
        ("capability = []\ngeneral = {}\n", "cannot be read"),
    ],
)
def test_an_invalid_table_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigInvalid, match=message):
        capabilities_of(text)


def test_a_table_may_be_empty() -> None:
    assert capabilities_of("[general]\n[capability]\n").asked_by(["git"]) == []


async def test_a_shell_is_found_for_git_and_the_reason_says_why() -> None:
    answer = await search_all(GIT_QUERY, threshold=0.35)
    assert names(answer)[0] == "bash"
    assert answer.hits[0].reason == "Capability inference (shell → git operations)"
    assert answer.hits[0].parts.probability == answer.hits[0].parts.boost == SURE


@pytest.mark.parametrize("model", [True, False], ids=["meaning", "words"])
async def test_a_specific_tool_ranks_before_the_shell(model: bool) -> None:
    answer = await search_all(GIT_QUERY, (*ITEMS, GIT_COMMIT), threshold=0.35, model=model)
    assert names(answer)[:2] == ["git_commit", "bash"]
    assert answer.hits[0].confidence > answer.hits[1].confidence
    assert answer.hits[0].parts.boost == 0.0


async def test_a_likely_tool_ranks_before_a_general_one() -> None:
    """It is likely by its name only, and less than the general tool."""
    search = search_over((replace(BASH, name="arm"), item("s", "hoistheavyxxx")), model=False)
    search._capabilities = robot()
    answer = await search.search(LocalQuery("hoist heavy"))
    assert names(answer) == ["hoistheavyxxx", "arm"]
    specific, general = (hit.parts.probability or 0.0 for hit in answer.hits)
    assert SURE > specific > general


async def test_at_most_two_general_tools_of_a_kind_are_raised() -> None:
    shells = tuple(item(f"shell{number}", "bash", f"Run it, {number}") for number in range(5))
    answer = await search_all(GIT_QUERY, (*shells, READ_FILE), threshold=0.35)
    assert sum(hit.parts.boost > 0 for hit in answer.hits) == 2


async def test_general_tools_found_by_no_retriever_have_no_confidence() -> None:
    shells = tuple(item(f"shell{number}", "bash", f"Run it, {number}") for number in range(5))
    answer = await search_all(GIT_QUERY, shells, model=False)
    assert [hit.parts.probability for hit in answer.hits] == [SURE, SURE, 0.0, 0.0, 0.0]


async def test_a_general_tool_named_in_the_query_keeps_its_confidence() -> None:
    answer = await search_all("bash")
    assert (names(answer)[0], answer.hits[0].reason) == ("bash", "Exact name")
    assert answer.hits[0].confidence >= 0.98


async def test_a_tool_of_two_kinds_has_the_higher_confidence() -> None:
    weaker = '[general.wheel]\nnames = ["arm"]\ndoes = ["rolling"]\n'
    weaker += '[capability.rolling]\nsays = "rolling"\nsurely = ["hoist"]\nperhaps = []\n'
    search = search_over((replace(BASH, name="arm"), READ_FILE))
    search._capabilities = capabilities_of(TABLE + weaker)
    answer = await search.search(LocalQuery("hoist heavy"))
    assert [(hit.parts.boost, hit.reason) for hit in answer.hits] == [
        (SURE, "Capability inference (robot → lifting things)")
    ]


async def test_a_user_may_provide_a_table() -> None:
    search = search_over((replace(BASH, name="arm"), READ_FILE))
    search._capabilities = robot()
    answer = await search.search(LocalQuery("hoist heavy"))
    assert [hit.reason for hit in answer.hits] == ["Capability inference (robot → lifting things)"]
    assert (await search.search(LocalQuery("git rebase"))).hits == ()
