"""What people type, read as what they mean; and what a person adds to the tables."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscript.core.errors import ConfigInvalid
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rewriting import Reading, default_rewriter, rewriter_with
from toolscript.core.retrieval.terms import terms_of_word

pytestmark = pytest.mark.requirement("TS-003")


def read(text: str) -> Reading:
    return default_rewriter().read(text)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("list PRs", "list pull requests"),
        ("make a github repo", "make a github repository"),
        ("open a PR", "create a pull request"),
        ("files that contain a word", "search file contents for a word"),
        ("peek at sales.csv", "peek at file sales.csv"),
        ("what's in ~/notes/ideas.md", "read file ~/notes/ideas.md"),
        ("show me package.json", "read file package.json"),
        ("open main.py", "read file main.py"),
        ("compare a.md and b.md", "compare file a.md and b.md"),
        ("what's in my downloads folder", "list contents of my downloads folder"),
        ("go to example.com", "navigate to example.com"),
        ("README.md", "read file README.md"),
        ("open the image logo.png", "open the image logo.png"),
        ("docs of node.js", "documentation of node.js"),
        ("SELECT name FROM users", "run sql query SELECT name FROM users"),
        ("https://example.com/a", "fetch web page https://example.com/a"),
    ],
)
def test_habits_are_read_as_what_they_mean(typed: str, meant: str) -> None:
    reading = read(typed)
    assert (reading.text, str(reading), reading.typed) == (meant, meant, typed)
    assert not reading.is_command


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rm -rf node_modules", "delete file node_modules"),
        ("mkdir reports", "create directory reports"),
        ("sudo kill -9 4312", "kill process 4312"),
        ("cat README.md", "read file README.md"),
        ("git co main", "git checkout main"),
        ("npm run build", "npm run build"),
        ("top", "list running processes"),
        ("Mkdir reports", "create directory reports"),
        ("kill 1234", "kill process 1234"),
        ("make test", "run build test"),
        ("less config.yml", "read file config.yml"),
        ("docker ps", "docker ps"),
    ],
)
def test_a_command_is_read_as_what_it_does(typed: str, meant: str) -> None:
    reading = read(typed)
    assert (reading.text, reading.is_command) == (meant, True)


UNCHANGED: list[str] = [
    "find the largest file",
    "kill the process that hangs",
    "make a new folder",
    "top ten songs of the year",
    "node version of the project",
    "select a file from the list",
    "open 'my repo' now",
    "look at src/repo/main",
    "a URL like https://example.com/docs",
    "open an ıssue",
    "send an email to mr smith",
    "lista los archivos del directorio",
    "send a mail to joe@firma.rs",
    "find hotels.",
    "find 3 restaurants in Berlin",
    "find NYC weather",
    "top 10 issues",
    "make 2 copies of the list",
    "kill it.",
    "go offline",
    "brew coffee",
    "docker containers",
    "aws costs last month",
]


def test_prose_paths_and_quotes_are_read_as_they_are(subtests: pytest.Subtests) -> None:
    for text in UNCHANGED:
        with subtests.test(text=text):
            reading = read(text)
            assert not reading.is_command
            assert "repository" not in reading.text
            assert reading.text.replace("file src", "src") == text


@pytest.mark.parametrize("text", ["help", "x", "do it", "hi there!", "continue", "thanks, go on", "???"])
def test_a_request_that_says_nothing_is_known(text: str) -> None:
    assert read(text).says_nothing


@pytest.mark.parametrize("text", ["help me with docker", "1234.5 + 99", "read", "continue the upload", "文件"])
def test_a_request_with_a_word_or_a_literal_says_something(text: str) -> None:
    assert not read(text).says_nothing


def test_products_are_named_and_not_those_in_paths() -> None:
    assert read("Telegram message to Jo, and one by Gmail").products == ("telegram", "gmail")
    assert read("fork vercel/next.js").products == ()


def test_what_was_typed_still_counts() -> None:
    request = parse_query(read("list PRs"))
    assert request.typed == "list PRs"
    assert request.whole.text == "list pull requests"
    assert terms_of_word("prs")[0] in request.whole.terms
    assert terms_of_word("pull")[0] in request.whole.terms


def test_a_synonym_works_one_way_and_is_not_embedded() -> None:
    request = parse_query(read("make a folder"))
    assert request.texts == ("make a folder",)
    assert terms_of_word("directory")[0] in request.whole.terms
    assert terms_of_word("folder")[0] not in parse_query(read("make a directory")).whole.terms


def test_steps_have_the_synonyms_of_their_own_words() -> None:
    request = parse_query(read("make a folder and then commit it"))
    first, second = request.steps
    assert [step.text for step in request.steps] == ["make a folder", "commit it"]
    assert [meaning.text for meaning in first.meanings_of(terms_of_word("folder")[0])] == ["directory"]
    assert second.synonyms == ()


def test_a_person_adds_to_the_tables_and_takes_away() -> None:
    own = rewriter_with(
        '[short_forms]\nkb = "knowledge base"\nrepo = ""\n[synonyms]\nship = "deploy"\n'
        '[words]\nproducts = "acmecloud"\n'
    )
    assert own.read("search the kb of a repo").text == "search the knowledge base of a repo"
    assert own.read("an acmecloud host on gmail").products == ("acmecloud", "gmail")
    assert terms_of_word("deploy")[0] in parse_query(own.read("ship the service")).whole.terms
    assert default_rewriter().read("a repo").text == "a repository"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shorts]\n", r"\[shorts\] is none of"),
        ("[words]\nverbs = 'go'\n", r"no \[words\] verbs"),
        ("[synonyms]\nfolder = 3\n", "texts only"),
        ("synonyms = []\n", "texts only"),
        ("[synonyms\n", "cannot be read"),
    ],
)
def test_a_table_with_a_mistake_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigInvalid, match=message):
        rewriter_with(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_and_reading_is_repeatable(text: str) -> None:
    reading = read(text)
    assert reading == read(text)
    assert reading.typed == text


def test_a_hostile_text_takes_little_time() -> None:
    for text in ("a/" * 500, "~/" + "a." * 400, "x" * 1000, ". " * 500, "a.b/" * 250, "'" * 999):
        read(text)


@pytest.mark.parametrize("text", ["help", "HELP", "help.", "OK", "thanks.", "hello...", "?!"])
def test_a_request_that_says_nothing_does_so_in_any_spelling(text: str) -> None:
    assert read(text).says_nothing


@pytest.mark.parametrize("text", ["help 12", "src/app", "'help'", "help.py"])
def test_a_literal_says_something(text: str) -> None:
    assert not read(text).says_nothing


@pytest.mark.parametrize(("text", "products"), [("isn't jira slow? it's", ("jira",)), ("say 'jira'", ())])
def test_an_apostrophe_is_no_quotation_mark(text: str, products: tuple[str, ...]) -> None:
    assert read(text).products == products


@pytest.mark.parametrize("text", [("-a." * 33 + "/") * 11, "“" * 1_000, "'" * 1_000, "a/" * 500, "a.b" * 333])
def test_hostile_texts_are_read_in_little_time(text: str) -> None:
    read(text)
    started = time.process_time()
    read(text)
    assert time.process_time() - started < 0.05


@pytest.mark.parametrize("table", ["[phrases]\n'' = 'x'", "[synonyms]\n'+' = 'size'", "[commands]\n'-' = 'x'"])
def test_an_entry_without_a_word_is_refused(table: str) -> None:
    with pytest.raises(ConfigInvalid, match="no word"):
        rewriter_with(table)


def test_what_means_nothing_and_endings_that_are_no_expressions_do_no_harm() -> None:
    own = rewriter_with("[synonyms]\nall = 'every'\n[short_forms]\nshow = 'the'\n[words]\nfiles = 'c++ ( *'")
    request = parse_query(own.read("show all of main.c++"))
    assert all(synonym.meaning.stems for synonym in request.synonyms)


def test_the_longer_phrase_counts() -> None:
    own = rewriter_with("[phrases]\n'open a bug report' = 'create a report'")
    assert own.read("open a bug report").text == "create a report"


def test_a_step_keeps_the_product_that_it_names() -> None:
    request = parse_query(read("list my files and send a message to slack"))
    assert [step.reading.products for step in request.steps if step.reading] == [(), ("slack",)]
