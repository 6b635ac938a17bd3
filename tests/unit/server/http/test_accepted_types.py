"""Content negotiation of responses."""

import pytest

from toolscript.core.web.paging import preferred

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"


ACCEPTED: list[tuple[list[str], str]] = [
    ([], JSON),
    ([""], JSON),
    (["*/*"], JSON),
    ([LINES], LINES),
    ([EVENTS], EVENTS),
    (["Application/X-NDJSON"], LINES),
    (["text/*"], EVENTS),
    (["application/*"], JSON),
    (["application/*;q=0.5, text/*"], EVENTS),
    ([f"{JSON};q=0.4, {LINES};q=0.9"], LINES),
    ([f"{JSON};q=0.9,{LINES};q=0.9"], JSON),
    ([f"{LINES}, */*;q=0.1"], LINES),
    ([f"*/*, {JSON};q=0.1"], LINES),
    ([f"{JSON};q=0.2", f"{EVENTS};q=0.7"], EVENTS),
    ([f"{LINES};profile=x;q=0.8, {EVENTS};Q = 0.9"], EVENTS),
    ([f"{LINES};q=0"], JSON),
    ([f"{JSON};q=0, {LINES};q=much"], JSON),
    (["image/png"], JSON),
    ([";;;,,,q=1"], JSON),
    ([f"{LINES};q=7, {JSON}"], JSON),
]


def test_the_preferred_type_is_sent_and_json_in_doubt(subtests: pytest.Subtests) -> None:
    for accepts, expected in ACCEPTED:
        with subtests.test(accepts=accepts, expected=expected):
            assert preferred(accepts, (JSON, LINES, EVENTS)) == expected
