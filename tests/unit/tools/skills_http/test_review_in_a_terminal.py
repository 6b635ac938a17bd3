"""`toolscript skills review` in a real terminal, on PostgreSQL."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.e2e.commands import environment
from tests.e2e.terminals import Terminal, in_a_terminal
from tests.unit.tools.skills_http.builders import Managed

pytestmark = pytest.mark.requirement("SK-006")

PROMPT = "[q]uit: "


def review(managed: Managed, *options: str) -> AbstractContextManager[Terminal]:
    return in_a_terminal(environment(managed.installation.environment), Path.cwd(), "skills", "review", *options)


async def test_a_person_reviews_suggestions_of_classifiers(managed: Managed) -> None:
    await managed.add("post", description="Send and read email messages")
    first = await managed.suggest("Meeting\x1b[2J Rooms", "create_event", description="Rooms for meetings")
    second = await managed.suggest("Email", "send_mail", description="Email messages")
    third = await managed.suggest("Nonsense", "readFile")
    with review(managed, "--by", "ann") as terminal:
        terminal.expect("Meeting [2J Rooms")
        terminal.expect("calendar__create_event: Schedule a meeting with other people")
        terminal.expect("1. post (")
        terminal.expect(PROMPT)
        terminal.type("a")
        terminal.expect("id [meeting_2j_rooms]: ")
        terminal.type("rooms")
        terminal.expect("name [Meeting [2J Rooms]: ")
        terminal.type("Meeting Rooms")
        terminal.expect("description [Rooms for meetings]: ")
        terminal.type("")
        terminal.expect("Email")
        terminal.expect(PROMPT)
        terminal.type("m")
        terminal.expect("merge into (1 to 2, or an id; empty: back): ")
        terminal.type("post")
        terminal.expect("Nonsense")
        terminal.expect(PROMPT)
        terminal.type("q")
        terminal.expect("1 approved, 1 merged, 0 rejected, 0 skipped")
        assert terminal.ended() == 0
    assert "\x1b[2J" not in terminal.shown
    suggestions = [await managed.stores.suggestions.find(number) for number in (first, second, third)]
    assert [(suggestion.state, suggestion.skill_id, suggestion.reviewed_by) for suggestion in suggestions] == [
        ("approved", "rooms", "ann"),
        ("merged", "post", "ann"),
        ("pending", None, None),
    ]
    made = (await managed.stores.taxonomy.find("rooms")).skill
    assert (made.name, made.description) == ("Meeting Rooms", "Rooms for meetings")


@pytest.mark.parametrize("end", [Terminal.end_of_input, Terminal.interrupt])
async def test_the_end_of_input_and_an_interrupt_end_a_review(
    managed: Managed, end: Callable[[Terminal], None]
) -> None:
    number = await managed.suggest("Unfinished", "readFile")
    with review(managed) as terminal:
        terminal.expect(PROMPT)
        end(terminal)
        terminal.expect("0 approved, 0 merged, 0 rejected, 0 skipped")
        assert terminal.ended() == 0
    assert (await managed.stores.suggestions.find(number)).state == "pending"
