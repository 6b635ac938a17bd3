"""A review in a terminal, over skills in memory: its output, its keys, and how it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from tests.unit.tools.indexing.skill_builders import Managed
from toolscript.cli.suggestions import KEYS, Dialogue, review_all
from toolscript.core.errors import ModelNotFound
from toolscript.core.taxonomy import Skill, SuggestionState
from toolscript.tools.skills.management import SkillManagement

pytestmark = pytest.mark.requirement("SK-006")

T = TypeVar("T")


@dataclass
class Reviewer:
    """A person at a terminal: their input, and all output."""

    runner: asyncio.Runner
    scene: Managed = field(default_factory=Managed)
    seen: list[str] = field(default_factory=list)

    def ask(self, action: Callable[[SkillManagement], Awaitable[T]]) -> T:
        async def act() -> T:
            return await action(self.scene.management)

        return self.runner.run(act())

    def suggest(self, name: str, *items: str, description: str = "") -> int:
        return self.runner.run(self.scene.suggest(name, *items, description=description))

    def add(self, *skills: Skill) -> None:
        for skill in skills:
            self.runner.run(self.scene.taxonomy.add(skill, "ann"))

    def state(self, number: int) -> SuggestionState:
        return self.runner.run(self.scene.suggestions.find(number)).state

    def review(self, *typed: str) -> dict[str, int]:
        left = iter(typed)

        def read(prompt: str) -> str:
            self.seen.append(prompt)
            try:
                return next(left)
            except StopIteration:
                raise EOFError from None

        done = review_all(self.ask, "ann", Dialogue(read, self.seen.append))
        assert next(left, None) is None, "some input was not read"
        return dict(done)

    @property
    def text(self) -> str:
        return "\n".join(self.seen)


@pytest.fixture
def service() -> Iterator[Reviewer]:
    with asyncio.Runner() as runner:
        yield Reviewer(runner)


def test_a_suggestion_is_printed_with_five_requesting_items_and_the_three_nearest_skills(
    service: Reviewer,
) -> None:
    service.add(*[Skill(name, name.title()) for name in ("crm", "mail", "maps", "music")])
    service.suggest("Crm leads", *[f"lead_{number}" for number in range(7)], description="Leads of a crm")
    assert service.review("s") == {"skipped": 1}
    assert "Crm leads" in service.text
    assert "description: Leads of a crm" in service.text
    assert "suggested for: 7 items" in service.text
    assert [f"lead_{number}" in service.text for number in range(7)] == [True] * 5 + [False] * 2
    assert "1. crm (" in service.text
    assert "3. " in service.text
    assert "4. " not in service.text


def test_enter_approves_a_skill_as_it_was_suggested(service: Reviewer) -> None:
    number = service.suggest("Customer Relations", "add_lead", description="Leads and deals")
    assert service.review("a", "", "", "") == {"approved": 1}
    assert "id [customer_relations]: " in service.seen
    made = service.ask(lambda skills: skills.taxonomy.find("customer_relations")).skill
    assert (made.name, made.description) == ("Customer Relations", "Leads and deals")
    assert service.state(number) is SuggestionState.APPROVED


def test_id_name_and_description_can_be_typed_instead(service: Reviewer) -> None:
    service.suggest("Customer Relations", "add_lead", description="Leads and deals")
    assert service.review("A", "crm", "CRM", "All about customers") == {"approved": 1}
    made = service.ask(lambda skills: skills.taxonomy.find("crm")).skill
    assert (made.name, made.description) == ("CRM", "All about customers")


def test_after_a_taken_or_invalid_id_the_prompt_repeats_and_keeps_the_input(service: Reviewer) -> None:
    service.add(Skill("crm", "CRM"))
    service.suggest("CRM", "add_lead")
    typed = ("a", "", "Customers", "Leads", "a", "Not An Id", "", "", "a", "customers", "", "")
    assert service.review(*typed) == {"approved": 1}
    assert "there is a skill 'crm' already" in service.text
    assert "an id is like calendar_management" in service.text
    made = service.ask(lambda skills: skills.taxonomy.find("customers")).skill
    assert (made.name, made.description) == ("Customers", "Leads")


def test_a_suggestion_is_merged_into_a_nearest_skill_by_its_number(service: Reviewer) -> None:
    service.add(Skill("crm", "Leads of a crm"), Skill("weather", "Rain and sun"))
    number = service.suggest("crm leads", "add_lead")
    assert service.review("m", "1") == {"merged": 1}
    assert service.ask(lambda skills: skills.suggestions.find(number)).skill_id == "crm"


def test_a_suggestion_is_merged_into_any_active_skill_by_its_id(service: Reviewer) -> None:
    service.add(Skill("crm", "CRM"), Skill("old", "Old", is_active=False))
    number = service.suggest("Leads", "add_lead")
    assert service.review("m", "nowhere", "m", "old", "m", "", "m", "crm") == {"merged": 1}
    assert "there is no skill 'nowhere'" in service.text
    assert service.ask(lambda skills: skills.suggestions.find(number)).skill_id == "crm"


def test_suggestions_are_rejected_and_skipped_one_after_the_other(service: Reviewer) -> None:
    numbers = [service.suggest(name, f"tool_{name}") for name in ("one", "two", "three")]
    assert service.review("r", "s", "r") == {"rejected": 2, "skipped": 1}
    assert [service.state(number).value for number in numbers] == ["rejected", "pending", "rejected"]
    assert "no more suggestions to review" in service.text


def test_after_an_invalid_key_the_prompt_repeats(service: Reviewer) -> None:
    service.suggest("CRM", "add_lead")
    assert service.review("", "x", "?", "s") == {"skipped": 1}
    assert service.seen.count(KEYS) == 4


@pytest.mark.parametrize("typed", [("r", "q"), ("r",), ("r", "a"), ("r", "m")])
def test_quitting_or_the_end_of_input_keeps_what_was_decided_and_nothing_else(
    service: Reviewer, typed: tuple[str, ...]
) -> None:
    numbers = [service.suggest(name, f"tool_{name}") for name in ("one", "two")]
    assert service.review(*typed) == {"rejected": 1}
    assert [service.state(number).value for number in numbers] == ["rejected", "pending"]


def test_a_concurrent_decision_is_reported_and_the_review_continues(service: Reviewer) -> None:
    first, second = (service.suggest(name, f"tool_{name}") for name in ("one", "two"))
    typed = iter(("r", "r"))

    def read(prompt: str) -> str:
        if service.state(first) is SuggestionState.PENDING:
            service.runner.run(service.scene.suggestions.reject(first, "bob"))
        return next(typed)

    done = review_all(service.ask, "ann", Dialogue(read, service.seen.append))
    assert dict(done) == {"decided elsewhere": 1, "rejected": 1}
    assert "suggestion 1 is already decided" in service.text
    assert service.ask(lambda skills: skills.suggestions.find(first)).reviewed_by == "bob"
    assert service.state(second) is SuggestionState.REJECTED


def test_without_a_model_the_review_continues_with_a_note(service: Reviewer) -> None:
    service.scene.model_fault = ModelNotFound("no model in that folder")
    service.add(Skill("crm", "CRM"))
    service.suggest("Leads", "add_lead")
    assert service.review("m", "crm") == {"merged": 1}
    assert "nearest skills are not shown: no model in that folder" in service.text


def test_a_review_without_suggestions_prints_that(service: Reviewer) -> None:
    assert service.review() == {}
    assert service.seen == ["no suggestions to review"]


def test_every_page_of_suggestions_is_reviewed(service: Reviewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolscript.cli.suggestions.PAGE", 2)
    for number in range(5):
        service.suggest(f"suggestion {number}", f"tool_{number}")
    assert service.review("r", "s", "r", "s", "r") == {"rejected": 3, "skipped": 2}


def test_text_of_a_model_or_a_server_cannot_move_the_cursor(service: Reviewer) -> None:
    service.suggest("Evil\x1b[2J\nname", "tool\x1b]0;owned\x07", description="des\rcription\u202e")
    service.review("a", "evil", "", "")
    assert all(char.isprintable() or char == "\n" for char in service.text)
    assert "Evil [2J name" in service.text
