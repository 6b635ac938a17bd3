"""Searches of a gateway with a person's rules."""

import pytest

from tests.unit.gateway.search.builders import ITEMS, names, search_over
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.curation import Curation, Rule, RuleKind
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.model import LocalAnswer, LocalQuery

SENTENCE = "read the contents of a file"
EVERY_TYPE = pytest.mark.parametrize("search_type", SearchType)
WITH_AND_WITHOUT_MODEL = pytest.mark.parametrize("model", [True, False])

PROMOTE_MAIL = Rule(RuleKind.PROMOTE, "read file", "mail__send_mail")
NEVER_READ = Rule(RuleKind.NEVER, "contents", "files__read_file")
POST = Rule(RuleKind.SYNONYM, "post", means="electronic letter")


async def search(
    text: str,
    *rules: Rule,
    search_type: SearchType = SearchType.HYBRID,
    model: bool = True,
    threshold: float = 0.0,
    kind: ItemKind | None = None,
) -> LocalAnswer:
    searched = search_over(ITEMS, model=model)
    searched.curation = Curation(rules)
    return await searched.search(
        LocalQuery(text, limit=100, threshold=threshold, kind=kind, search_type=search_type)
    )


@EVERY_TYPE
@WITH_AND_WITHOUT_MODEL
async def test_a_promoted_tool_is_first_and_a_good_match(search_type: SearchType, model: bool) -> None:
    before = await search(SENTENCE, search_type=search_type, model=model)
    answer = await search(SENTENCE, PROMOTE_MAIL, search_type=search_type, model=model, threshold=0.95)
    assert names(before)[0] != "send_mail"
    assert (names(answer)[0], answer.good_match) == ("send_mail", True)
    assert answer.hits[0].reason == "Promoted for `read file`"
    assert answer.hits[0].confidence == 1.0


@WITH_AND_WITHOUT_MODEL
async def test_a_promotion_leaves_the_order_of_the_other_tools(model: bool) -> None:
    before, answer = await search(SENTENCE, model=model), await search(SENTENCE, PROMOTE_MAIL, model=model)
    assert names(answer)[1:] == [name for name in names(before) if name != "send_mail"]


async def test_a_promotion_applies_only_to_tools_of_the_requested_kind() -> None:
    answer = await search(SENTENCE, PROMOTE_MAIL, kind=ItemKind.PROMPT)
    assert "send_mail" not in names(answer)


async def test_a_promotion_of_a_tool_that_no_server_has_changes_nothing() -> None:
    gone = Rule(RuleKind.PROMOTE, "read file", "gone__tool")
    assert (await search(SENTENCE, gone)).hits == (await search(SENTENCE)).hits


@EVERY_TYPE
@WITH_AND_WITHOUT_MODEL
async def test_a_tool_that_is_never_for_a_request_is_not_returned(search_type: SearchType, model: bool) -> None:
    before = await search(SENTENCE, search_type=search_type, model=model)
    answer = await search(SENTENCE, NEVER_READ, search_type=search_type, model=model)
    assert "read_file" in names(before)
    assert "read_file" not in names(answer)
    assert "read_file" not in [miss.item.name for miss in answer.near_misses]
    assert answer.rules == ("files__read_file is never for `contents`",)


async def test_not_even_its_name_returns_a_tool_that_is_never_for_a_request() -> None:
    never = Rule(RuleKind.NEVER, "read_file", "files__read_file")
    assert "read_file" not in names(await search("read_file", never))


async def test_rules_that_do_not_apply_change_nothing() -> None:
    text = "what will the weather be"
    assert await search(text, PROMOTE_MAIL, NEVER_READ, POST) == await search(text)


async def test_an_explanation_names_the_rule_that_excludes_a_tool() -> None:
    searched = search_over(ITEMS)
    searched.curation = Curation([NEVER_READ])
    placement = await searched.explain(LocalQuery(SENTENCE), 0)
    assert placement.place is None
    assert placement.hit.reason == "Never for `contents`"


@pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.KEYWORD])
async def test_a_synonym_finds_a_tool_by_other_words_and_says_so(search_type: SearchType) -> None:
    text = "post to somebody"
    before = await search(text, search_type=search_type, model=False)
    answer = await search(text, POST, search_type=search_type, model=False)
    assert "post" in before.unmatched
    assert "post" not in answer.unmatched
    assert answer.hits[0].item.name == "send_mail"
    assert answer.hits[0].confidence > before.hits[0].confidence
    assert "post as electronic letter" in answer.hits[0].reason
    assert [match.word for match in answer.hits[0].parts.matched] == ["post", "somebody"]


async def test_a_word_of_a_rule_is_not_taken_for_a_misspelt_one() -> None:
    """Without the rule, `appointmnt` is read as `appointment`."""
    rule = Rule(RuleKind.SYNONYM, "appointmnt", means="electronic letter")
    before, answer = await search("appointmnt", model=False), await search("appointmnt", rule, model=False)
    assert names(before)[0] == "create_event"
    assert names(answer) == ["send_mail"]
