"""The classifier by rules: its assignments, its reasons, and that they are deterministic."""

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tools.classify.builders import (
    CALENDAR,
    FILES,
    MAIL,
    SKILLS,
    ids_of,
    many_skills,
    random_vectors,
    tool,
    unclassified,
)
from toolscript.core.items import MAX_ASSIGNMENTS, AssignedBy, Item, ItemKind
from toolscript.core.taxonomy import Classification, Skill, Unclassified
from toolscript.testing import HashEmbedder
from toolscript.tools.classify.rules import RulesClassifier, confidence_of

pytestmark = pytest.mark.requirement("SK-005")


async def classified(item: Item, *skills: Skill) -> Classification:
    embedder = HashEmbedder()
    (answer,) = await RulesClassifier(embedder).classify(await unclassified(embedder, [item]), skills or SKILLS)
    return answer


async def test_an_item_is_in_the_skill_whose_keywords_it_contains() -> None:
    answer = await classified(tool("read_file", "Return the text of a file."))
    assert ids_of(answer) == ["file_work"]
    assert answer.suggestion is None
    assert {assignment.source for assignment in answer.assignments} == {AssignedBy.RULES}


async def test_the_reason_names_the_skill_the_similarity_and_the_keywords() -> None:
    (assigned,) = (await classified(tool("read_file", "A path to a file in a folder."))).assignments
    assert assigned.reason.startswith("like 'Files & Folders' (0.")
    assert assigned.reason.endswith("; keywords file, path, folder")


async def test_an_item_similar_to_no_skill_is_in_no_skill() -> None:
    assert await classified(tool("zzz", "qqq")) == Classification()


@pytest.mark.parametrize(
    "described", ["", "   ", "搜索文件并返回路径", "Прочитать файл", "\ud800\0", "🙂🙂", "—", "a" * 50_000]
)
async def test_any_text_can_be_classified(described: str) -> None:
    answer = await classified(tool("read_file", described))
    assert ids_of(answer) in (["file_work"], [])


async def test_empty_items_and_empty_batches_can_be_classified() -> None:
    embedder = HashEmbedder()
    rules = RulesClassifier(embedder)
    nothing = Unclassified(Item("", ItemKind.PROMPT, "", ""), np.zeros(64, dtype=np.float32))
    assert await rules.classify([nothing], SKILLS) == [Classification()]
    assert await rules.classify([nothing], []) == [Classification()]
    assert await rules.classify([], SKILLS) == []


async def test_the_name_counts_more_than_the_description() -> None:
    answer = await classified(tool("read_file", "Of an email."))
    assert ids_of(answer)[0] == "file_work"


async def test_a_second_skill_is_assigned_only_with_a_close_score() -> None:
    twin = replace(CALENDAR, id="calendar_too")
    assert ids_of(await classified(tool("list_events", "Calendar."), CALENDAR, twin, FILES)) == [
        "calendar",
        "calendar_too",
    ]
    assert ids_of(await classified(tool("list_events", "Calendar."), CALENDAR, MAIL, FILES)) == ["calendar"]


async def test_an_item_has_at_most_three_skills() -> None:
    twins = [replace(CALENDAR, id=f"calendar_{number}") for number in range(9)]
    assert len(ids_of(await classified(tool("list_events"), *twins))) == MAX_ASSIGNMENTS


async def test_an_inactive_skill_is_not_assigned() -> None:
    assert ids_of(await classified(tool("list_events"), replace(CALENDAR, is_active=False), FILES)) == []


async def test_the_answer_is_the_same_in_every_batch_and_for_every_order_of_skills() -> None:
    embedder = HashEmbedder(dimensions=384)
    vectors = random_vectors(64, 384)
    items = [Unclassified(tool(f"do_trade{row % 7}_thing"), vector) for row, vector in enumerate(vectors)]
    skills = many_skills(200)
    together = await RulesClassifier(embedder).classify(items, skills)
    alone = [(await RulesClassifier(embedder).classify([item], skills[::-1]))[0] for item in items]
    backwards = await RulesClassifier(embedder).classify(items[::-1], skills)
    assert list(together) == alone == list(backwards)[::-1]
    assert any(answer.assignments for answer in together)


async def test_a_skill_is_embedded_again_only_when_its_text_changes() -> None:
    embedder = HashEmbedder()
    rules = RulesClassifier(embedder)
    items = await unclassified(embedder, [tool("read_file")])
    before = embedder.texts_embedded
    for _ in range(3):
        await rules.classify(items, SKILLS)
    assert embedder.texts_embedded == before + len(SKILLS)
    await rules.classify(items, [replace(CALENDAR, keywords=("date",)), replace(FILES, description="Disks"), MAIL])
    assert embedder.texts_embedded == before + len(SKILLS) + 1


async def test_changed_keywords_count_at_once() -> None:
    embedder = HashEmbedder()
    rules = RulesClassifier(embedder)
    items = await unclassified(embedder, [tool("frobnicate")])
    assert ids_of((await rules.classify(items, SKILLS))[0]) == []
    renamed = [replace(FILES, keywords=("frobnicate",)), CALENDAR]
    assert ids_of((await rules.classify(items, renamed))[0]) == ["file_work"]


def test_confidence_grows_with_the_score_and_stays_below_one() -> None:
    confidences = [confidence_of(score) for score in (-1.0, 0.1, 0.2, 0.3, 0.5, 2.0)]
    assert confidences == sorted(confidences)
    assert confidences[2] == pytest.approx(0.5)
    assert 0 < confidences[0] < 0.01
    assert confidences[-1] < 1


def test_a_skill_with_a_rival_is_less_sure_and_still_more_likely_right_than_wrong() -> None:
    confidences = [confidence_of(0.5, lead) for lead in (0.0, 0.05, 0.15, 0.9)]
    assert confidences == sorted(confidences)
    assert 0.5 < confidences[0] < confidences[1] < confidences[2] == confidences[3] == confidence_of(0.5)
    assert confidence_of(0.1, 0.0) == confidence_of(0.1)


async def test_the_first_skill_is_surer_than_a_rival_and_surest_alone() -> None:
    rival = replace(CALENDAR, id="calendar_too", keywords=("calendar", "event"))
    first, second = (await classified(tool("list_events", "Calendar."), CALENDAR, rival, FILES)).assignments
    (alone,) = (await classified(tool("list_events", "Calendar."), CALENDAR, FILES)).assignments
    assert second.confidence <= first.confidence < alone.confidence


async def test_many_items_and_many_skills_take_little_time() -> None:
    embedder = HashEmbedder(dimensions=384)
    rules = RulesClassifier(embedder)
    items = [
        Unclassified(tool(f"do_trade{row}", "Does the thing of a trade, and says how it went."), vector)
        for row, vector in enumerate(random_vectors(256, 384))
    ]
    skills = many_skills(1_000)
    await rules.classify(items[:1], skills)
    began = time.process_time()
    await rules.classify(items, skills)
    assert time.process_time() - began < 1.0
