"""General tools: which they are, what they are known to do, and how far they may come forward."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import BASH, GIT_COMMIT, ITEMS, READ_FILE, found, item, names, search_over
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


def asked(text: str, capabilities: Capabilities | None = None) -> dict[str, tuple[float, str]]:
    """Kind of general tool to how sure it is, and what it would do."""
    found = (capabilities or default_capabilities()).asked_by(text.split())
    return {general.kind: (inferred.confidence, inferred.capability) for general, inferred in found}


def test_a_table_is_read_as_it_is_written() -> None:
    (general,) = robot().general
    assert (general.kind, general.does) == ("robot", ("lifting",))
    assert general.includes(frozenset({"arm", "run"}), frozenset())
    assert general.includes(frozenset({"robot", "hand"}), frozenset({"any"}))
    assert not general.includes(frozenset({"robot"}), frozenset())
    assert not general.includes(frozenset({"arm", "history"}), frozenset({"arm"}))


def test_all_tools_of_a_server_are_general_where_the_table_says_so() -> None:
    shell = next(one for one in default_capabilities().general if one.kind == "shell")
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
def test_a_sure_word_is_enough_and_of_the_others_it_takes_two(text: str, strength: float) -> None:
    assert asked(text, robot()) == ({"robot": (strength, "lifting things")} if strength else {})


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
def test_a_shell_is_known_to_do_what_it_implies(text: str, capability: str) -> None:
    assert asked(text)["shell"][1] == capability


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
def test_a_bad_table_is_refused_with_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ConfigInvalid, match=message):
        capabilities_of(text)


def test_a_table_may_know_nothing() -> None:
    assert capabilities_of("[general]\n[capability]\n").asked_by(["git"]) == []


async def test_a_shell_is_found_for_git_and_the_reason_says_why() -> None:
    answer = await found(GIT_QUERY, threshold=0.35)
    assert names(answer)[0] == "bash"
    assert answer.hits[0].reason == "Capability inference (shell → git operations)"
    assert answer.hits[0].confidence == answer.hits[0].parts.boost == SURE


@pytest.mark.parametrize("model", [True, False], ids=["meaning", "words"])
async def test_a_tool_for_just_that_stays_before_the_shell(model: bool) -> None:
    answer = await found(GIT_QUERY, (*ITEMS, GIT_COMMIT), threshold=0.35, model=model)
    assert names(answer)[:2] == ["git_commit", "bash"]
    assert answer.hits[0].confidence > answer.hits[1].confidence
    assert answer.hits[0].parts.boost == 0.0


async def test_a_tool_that_is_likely_enough_stays_before_a_general_one() -> None:
    """Likely by its name alone, and less so than a general tool would be."""
    search = search_over((replace(BASH, name="arm"), item("s", "hoistheavyxxx")), model=False)
    search._capabilities = robot()
    answer = await search.search(LocalQuery("hoist heavy"))
    assert names(answer) == ["hoistheavyxxx", "arm"]
    assert SURE > answer.hits[0].confidence > answer.hits[1].confidence


async def test_at_most_two_general_tools_of_a_kind_come_forward() -> None:
    shells = tuple(item(f"shell{number}", "bash", "Run it") for number in range(5))
    answer = await found(GIT_QUERY, (*shells, READ_FILE), threshold=0.35)
    assert sum(hit.parts.boost > 0 for hit in answer.hits) == 2


async def test_general_tools_that_stay_back_and_that_no_arm_names_are_worth_nothing() -> None:
    shells = tuple(item(f"shell{number}", "bash", "Run it") for number in range(5))
    answer = await found(GIT_QUERY, shells, model=False)
    assert [hit.confidence for hit in answer.hits] == [SURE, SURE, 0.0, 0.0, 0.0]


async def test_a_general_tool_that_was_named_is_not_made_less_likely() -> None:
    answer = await found("bash")
    assert (names(answer)[0], answer.hits[0].reason) == ("bash", "Exact name")
    assert answer.hits[0].confidence >= 0.98


async def test_a_tool_of_two_kinds_is_worth_the_better_of_them() -> None:
    weaker = '[general.wheel]\nnames = ["arm"]\ndoes = ["rolling"]\n'
    weaker += '[capability.rolling]\nsays = "rolling"\nsurely = ["hoist"]\nperhaps = []\n'
    search = search_over((replace(BASH, name="arm"), READ_FILE))
    search._capabilities = capabilities_of(TABLE + weaker)
    answer = await search.search(LocalQuery("hoist heavy"))
    assert [(hit.parts.boost, hit.reason) for hit in answer.hits] == [
        (SURE, "Capability inference (robot → lifting things)")
    ]


async def test_a_person_may_bring_a_table_of_their_own() -> None:
    search = search_over((replace(BASH, name="arm"), READ_FILE))
    search._capabilities = robot()
    answer = await search.search(LocalQuery("hoist heavy"))
    assert [hit.reason for hit in answer.hits] == ["Capability inference (robot → lifting things)"]
    assert (await search.search(LocalQuery("git rebase"))).hits == ()
