"""Where nothing fits the nearest are shown as guesses, within the bounds of the request; confidences cannot
contradict the verdict."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import ITEMS, READ_FILE, WRITE_FILE, item, search_over
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.items import Item, ItemKind, tool_id
from toolscript.core.retrieval.curation import Curation, Rule, RuleKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, SHOWN
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.index import LocalIndex, analyse
from toolscript.gateway.model import DEFAULT_THRESHOLD, LocalAnswer, LocalQuery
from toolscript.gateway.search import NEAR_MISSES, LocalSearch

pytestmark = pytest.mark.requirement("TS-002", "TS-003")

TOOLS = (
    *ITEMS,
    item("github", "create_repository", "Create a new repository in your account"),
    item("github", "get_pull_request", "Get the details of a pull request"),
    item("github", "create_pull_request", "Create a new pull request from a branch"),
    item("git", "git_commit", "Records changes to the repository"),
    item("git", "git_branch", "List or create branches"),
    item("disk", "create_directory", "Create a new directory"),
)
NONSENSE = ("help", "telegram message to Jo", "polish the trumpets of Saturn", "x")


@pytest.fixture(scope="module")
async def search() -> LocalSearch:
    return await search_of(TOOLS)


async def search_of(items: tuple[Item, ...]) -> LocalSearch:
    embedder, search = StaticEmbedder(), LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    vectors = await embed_items(embedder, items)
    search.index = LocalIndex(items, [analyse(one) for one in items], vectors).warm()
    search.embedder, search.scale = embedder, await measure_scale(embedder)
    return search


def names(answer: LocalAnswer) -> list[str]:
    return [hit.item.name for hit in (answer.hits or answer.near_misses)]


def test_the_default_threshold_is_what_confidences_are_scaled_to() -> None:
    assert DEFAULT_THRESHOLD == SHOWN


@pytest.mark.parametrize("text", NONSENSE)
async def test_where_nothing_fits_the_nearest_are_guesses_and_no_confidence_says_otherwise(
    search: LocalSearch, text: str
) -> None:
    answer = await search.search(LocalQuery(text))
    assert (answer.good_match, answer.hits) == (False, ())
    assert 0 < len(answer.near_misses) <= NEAR_MISSES
    assert all(miss.confidence < DEFAULT_THRESHOLD for miss in answer.near_misses)
    assert all(miss.reason for miss in answer.near_misses)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("make a new folder", "create_directory"),
        ("make a github repo", "create_repository"),
        ("open a PR", "create_pull_request"),
        ("mkdir reports", "create_directory"),
    ],
)
async def test_ordinary_words_find_what_they_mean(search: LocalSearch, text: str, name: str) -> None:
    answer = await search.search(LocalQuery(text))
    assert answer.good_match
    assert names(answer)[0] == name
    assert answer.near_misses == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("close issue 7", "update_issue"),
        ("assign issue 5 to Anna", "update_issue"),
        ("approve that pull request", "create_pull_request_review"),
        ("go to example.com", "browser_navigate"),
        ("show me README.md", "read_file"),
    ],
)
async def test_what_trackers_and_browsers_call_otherwise_is_found_by_its_usual_name(text: str, name: str) -> None:
    others = (
        item("github", "update_issue", "Update an existing issue in a repository"),
        item("github", "create_pull_request_review", "Create a review on a pull request"),
        item("playwright", "browser_close", "Close the page"),
        item("playwright", "browser_navigate", "Navigate to a URL"),
        item("git", "git_show", "Shows the contents of a commit"),
    )
    answer = await (await search_of((*TOOLS, *others))).search(LocalQuery(text))
    assert answer.good_match
    assert names(answer)[0] == name


async def test_each_step_has_its_own_first_three(search: LocalSearch) -> None:
    answer = await search.search(LocalQuery("make a new branch, commit everything and polish the trumpets"))
    assert [step.query for step in answer.steps] == [
        "make a new branch",
        "commit everything and polish the trumpets",
    ]
    for step in answer.steps:
        assert 0 < len(step.hits or step.near_misses) <= NEAR_MISSES
        assert bool(step.hits) != bool(step.near_misses)


async def test_a_guess_is_within_the_kind_of_the_request(search: LocalSearch) -> None:
    answer = await search.search(LocalQuery("polish the trumpets", kind=ItemKind.PROMPT))
    assert {miss.item.kind for miss in answer.near_misses} == {ItemKind.PROMPT}


@pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.SEMANTIC])
async def test_what_may_be_no_guess_is_none(search_type: SearchType) -> None:
    search = await search_of(TOOLS)
    query = LocalQuery("polish the trumpets", threshold=0.9, search_type=search_type)
    first, *_ = (await search.search(query)).near_misses
    search.may_guess = lambda one: one is not first.item
    answer = await search.search(query)
    assert first.item not in [miss.item for miss in answer.near_misses]
    assert answer.near_misses


async def test_an_excluded_tool_is_no_guess() -> None:
    search = await search_of(TOOLS)
    first, *_ = (await search.search(LocalQuery("polish the trumpets"))).near_misses
    name = tool_id(first.item.server, first.item.name)
    search.curation = Curation([Rule(RuleKind.NEVER, "trumpets", name)])
    answer = await search.search(LocalQuery("polish the trumpets"))
    assert first.item not in [miss.item for miss in answer.near_misses]


async def test_the_answer_says_how_it_was_read(search: LocalSearch) -> None:
    assert (await search.search(LocalQuery("open a PR"))).read_as == "create a pull request"
    assert (await search.search(LocalQuery("read a file"))).read_as == ""


async def test_literal_mode_reads_what_is_typed(search: LocalSearch) -> None:
    prepared = search.prepare(LocalQuery("list PRs"))
    literal = search.prepare(replace(prepared.query, search_type=SearchType.SEMANTIC))
    assert literal.texts == ("list PRs",)
    assert prepared.texts == ("list pull requests",)


async def test_a_synonym_of_a_person_finds_what_it_names_with_a_true_reason() -> None:
    memory = item("memory", "create_entities", "Create multiple new entities in the knowledge graph")
    form = item("chrome", "fill_form", "Fill out a form, and remember it")
    search = await search_of((*TOOLS, memory, form))
    search.curation = Curation([Rule(RuleKind.SYNONYM, "remember", means="create entities")])
    answer = await search.search(LocalQuery("remember Anna", threshold=0.0))
    assert names(answer)[0] == "create_entities"
    assert "remember as create entities" in answer.hits[0].reason
    (other,) = [hit for hit in answer.hits if hit.item.name == "fill_form"]
    assert "as create entities" not in other.reason


@pytest.mark.parametrize(
    "typed", ["files__read_file", "mcp__files__read_file", "mcp__toolscript__files__read_file"]
)
async def test_a_name_with_the_prefix_of_a_client_is_exact(typed: str) -> None:
    answer = await search_over((READ_FILE, WRITE_FILE)).search(LocalQuery(typed))
    assert (answer.hits[0].item.name, answer.hits[0].reason) == ("read_file", "Exact name")


async def test_two_misspelt_words_of_four_are_read() -> None:
    issue = item("github", "create_issue", "Create a new issue in a repository")
    search = await search_of((*TOOLS, issue))
    answer = await search.search(LocalQuery("crate isue on githb"))
    assert (answer.good_match, names(answer)[0]) == (True, "create_issue")


async def test_a_request_whose_steps_all_fit_fits() -> None:
    search = await search_of(TOOLS)
    answer = await search.search(LocalQuery("create a directory for the reports, then list the branches"))
    assert [step.good_match for step in answer.steps] == [True, True]
    assert answer.good_match
    assert names(answer)[:2] in (["create_directory", "git_branch"], ["git_branch", "create_directory"])
    assert not answer.near_misses
