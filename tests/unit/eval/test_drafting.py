"""Drafts of a dataset: reproducible by seed, consistent with the catalog, with notes where rules are unsure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

from toolscript.core.errors import InvalidRequest, Rejected, Unavailable
from toolscript.core.items import Item, ItemKind
from toolscript.tools.catalog.files import read_items
from toolscript_eval.dataset import Draft, DraftedQuery
from toolscript_eval.drafting import NOTE_UNANSWERABLE, Paraphrase, draft
from toolscript_eval.drafting_words import OFF_TOPIC, first_sentence

CATALOG = Path(__file__).parents[2] / "golden" / "tools.jsonl"
ITEMS = [item for item in read_items(CATALOG) if isinstance(item, Item)]
MANY = 1000


def tool(server: str, name: str, description: str = "") -> Item:
    return Item(f"{server}/{name}", ItemKind.TOOL, server, name, description)


async def drafted(
    items: Sequence[Item] = ITEMS, seed: int = 1, per_kind: int = MANY, paraphrase: Paraphrase | None = None
) -> Draft:
    return await draft(items, seed=seed, per_kind=per_kind, paraphrase=paraphrase)


def of_kind(made: Draft, kind: str) -> list[DraftedQuery]:
    return [query for query in made.queries if query.kind == kind]


def gold(drafted_query: DraftedQuery) -> set[str]:
    return {key for step in drafted_query.query.steps for key in step}


def answer_to(made: Draft, text: str) -> set[str]:
    (answer,) = [gold(query) for query in made.queries if query.query.text == text]
    return answer


async def test_the_same_seed_drafts_the_same_whatever_the_order_of_the_items() -> None:
    assert await drafted(per_kind=9) == await drafted(ITEMS[::-1], per_kind=9)


async def test_another_seed_drafts_something_else() -> None:
    texts = [[query.query.text for query in (await drafted(seed=seed, per_kind=9)).queries] for seed in (1, 2)]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("per_kind", [1, 7])
async def test_a_draft_has_the_requested_number_of_each_kind(per_kind: int) -> None:
    kinds = ("exact", "typo", "paraphrase", "unanswerable")
    assert dict((await drafted(per_kind=per_kind)).counts) == dict.fromkeys(kinds, per_kind)


async def test_ids_and_texts_are_unique_and_every_relevant_tool_exists() -> None:
    made = await drafted()
    ids, texts = (
        [query.query.id for query in made.queries],
        [query.query.text.casefold() for query in made.queries],
    )
    assert (len(set(ids)), len(set(texts))) == (len(ids), len(texts))
    assert set.union(*map(gold, made.queries)) <= {item.key for item in made.items}
    assert all(set(query.query.relevant) == gold(query) for query in made.queries)


async def test_the_draft_is_a_dataset() -> None:
    made = await drafted(per_kind=3)
    judged = made.judged("mine")
    assert (judged.name, judged.items, len(judged.queries)) == ("mine", made.items, 12)


async def test_only_unanswerable_queries_have_no_tool_and_a_note() -> None:
    made = await drafted()
    without = {query.query.id for query in made.queries if not query.query.answerable}
    assert without == {query.query.id for query in of_kind(made, "unanswerable")}
    assert {query.note for query in of_kind(made, "unanswerable")} == {NOTE_UNANSWERABLE}
    assert {query.note for query in made.queries if query.query.answerable} == {""}


async def test_names_are_drafted_alone_and_with_their_server() -> None:
    made = await drafted()
    names = {item.name for item in ITEMS}
    with_server = {item.key for item in made.items}
    texts = [query.query.text for query in of_kind(made, "exact")]
    alone = [text for text in texts if text in names]
    assert set(texts) - set(alone) <= with_server
    assert min(len(alone), len(texts) - len(alone)) > len(texts) // 3


async def test_every_typo_is_one_or_two_edits_away_from_its_original() -> None:
    made = await drafted()
    originals = [text for item in ITEMS for text in (item.name, first_sentence(item.description)) if text]
    typos = [query.query.text for query in of_kind(made, "typo")]
    distances = {min(Levenshtein.distance(typo, original) for original in originals) for typo in typos}
    assert distances == {1, 2}
    assert len(typos) > 100


async def test_a_typo_never_is_the_name_of_another_tool() -> None:
    items = [tool("a", "form"), tool("a", "from")]
    made = [await drafted(items, seed) for seed in range(30)]
    typos = {query.query.text for draft in made for query in of_kind(draft, "typo")}
    assert typos
    assert not typos & {"form", "from"}


async def test_a_bare_name_means_every_tool_of_that_name_however_it_is_spelled() -> None:
    items = [tool("a", "read_file", "Pages."), tool("b", "readFile", "Disks."), tool("c", "write_file", "Pages.")]
    made = [await drafted(items, seed) for seed in range(6)]
    answers = [
        gold(query) for draft in made for query in of_kind(draft, "exact") if query.query.text == "read_file"
    ]
    assert answers
    assert all(answer == {"a__read_file", "b__readFile"} for answer in answers)


async def test_a_name_with_its_server_means_that_tool_alone() -> None:
    made = await drafted()
    with_server = [query for query in of_kind(made, "exact") if "__" in query.query.text]
    assert all(gold(query) == {query.query.text} for query in with_server)


ISSUES = "Create an issue in a project."


@pytest.mark.parametrize(
    ("other", "interchangeable"),
    [
        (tool("b", "create_issue", ISSUES), True),
        (tool("b", "createIssue", "Create an issue in a project, with labels."), True),
        (tool("b", "new", "Create an issue in a project. Labels may be set."), True),
        (tool("b", "create_issue"), True),
        (tool("b", "create_issue", "Print the next number of a magazine."), False),
        (tool("b", "close_issue", "Close an issue in a project."), False),
    ],
    ids=["same", "spelled otherwise", "same sentence", "not described", "same name only", "another name"],
)
async def test_tools_with_the_same_description_are_interchangeable_for_a_paraphrase(
    other: Item, interchangeable: bool
) -> None:
    made = [await drafted([tool("a", "create_issue", ISSUES), other], seed) for seed in range(9)]
    paraphrases = [gold(query) for draft in made for query in of_kind(draft, "paraphrase")]
    meant = [keys for keys in paraphrases if "a__create_issue" in keys]
    assert meant
    assert all((len(keys) == 2) is interchangeable for keys in meant)


async def test_a_request_is_unanswerable_only_if_the_catalog_lacks_its_words() -> None:
    pizza = next(text for text in OFF_TOPIC if "pizza" in text)
    nothing = await drafted([tool("a", "read_file", "Read a file.")])
    assert pizza in {query.query.text for query in of_kind(nothing, "unanswerable")}
    kitchen = await drafted([tool("a", "order", "Orders a large pizza to your door.")])
    assert pizza not in {query.query.text for query in of_kind(kitchen, "unanswerable")}


async def test_keys_become_readable_unless_two_tools_would_be_one() -> None:
    apart = await drafted([tool("a", "x"), tool("b", "x")])
    assert [item.key for item in apart.items] == ["a__x", "b__x"]
    alike = await drafted([tool("a", "b__c"), tool("a__b", "c")])
    assert [item.key for item in alike.items] == ["a/b__c", "a__b/c"]


async def test_prompts_and_resources_are_left_out_and_without_tools_there_is_no_draft() -> None:
    prompt = replace(tool("a", "sum_up"), kind=ItemKind.PROMPT)
    assert [item.name for item in (await drafted([prompt, tool("a", "x")])).items] == ["x"]
    with pytest.raises(InvalidRequest, match="no tools") as refused:
        await drafted([prompt])
    assert refused.value.hint


async def test_paraphrases_of_a_text_model_are_their_own_kind() -> None:
    async def paraphrase(item: Item) -> Sequence[str]:
        return [f"wish for {item.name} of {item.server}", "the same for all"]

    made = await drafted(per_kind=5, paraphrase=paraphrase)
    worded = of_kind(made, "model_paraphrase")
    assert len(worded) == 5
    assert sum(query.query.text == "the same for all" for query in worded) == 1
    assert all(query.query.answerable for query in worded)


async def test_a_tool_without_usable_paraphrases_is_left_out() -> None:
    async def paraphrase(item: Item) -> Sequence[str]:
        if item.name != "x":
            raise Rejected("nonsense")
        return ["please"]

    made = await drafted([tool("a", "x"), tool("a", "y"), tool("a", "z")], paraphrase=paraphrase)
    assert answer_to(made, "please") == {"a__x"}
    assert len(of_kind(made, "model_paraphrase")) == 1


@pytest.mark.parametrize("error", [Rejected("nonsense only"), Unavailable("not there")], ids=str)
async def test_a_model_of_no_use_at_all_is_an_error(error: Exception) -> None:
    async def paraphrase(item: Item) -> Sequence[str]:
        raise error

    with pytest.raises(type(error), match=str(error)):
        await drafted(paraphrase=paraphrase, per_kind=2)
