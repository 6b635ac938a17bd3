"""A recorded answer differs from one with another status, ranking, value or field, and from no other."""

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.recording.digests import differences, kept

pytestmark = pytest.mark.requirement("TR-004")

FOLDER = tempfile.gettempdir()
ANSWER: dict[str, Any] = {
    "query": "read a file",
    "results": [{"tool_id": "a__read", "score": 0.51234}, {"tool_id": "b__read", "score": 0.4}],
    "metadata": {"took_ms": 3, "path": f"{FOLDER}/one/x"},
}


def _without_score(answer: dict[str, Any]) -> None:
    for hit in answer["results"]:
        del hit["score"]


def _other_order(answer: dict[str, Any]) -> None:
    answer["results"].reverse()


def _other_score(answer: dict[str, Any]) -> None:
    answer["results"][0]["score"] = 0.6


def _new_part(answer: dict[str, Any]) -> None:
    answer["hint"] = ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_score, "results differs, its fields differ"),
        (_other_order, "ranking [a__read, b__read] -> [b__read, a__read]"),
        (_other_score, "results differs"),
        (_new_part, "hint is new, its fields differ"),
    ],
)
def test_a_change_is_named(change: Callable[[dict[str, Any]], None], said: str) -> None:
    changed = copy.deepcopy(ANSWER)
    change(changed)
    (found,) = differences({"a request": kept(200, ANSWER)}, {"a request": kept(200, changed)})
    assert (found.request, found.what) == ("a request", said)


def test_another_status_and_a_request_that_is_gone_are_named() -> None:
    before = {"one": kept(200, ANSWER), "two": kept(200, ANSWER)}
    assert {item.what for item in differences(before, {"one": kept(503, {})})} == {
        "status 200 -> 503",
        "is not asked any more",
    }


def test_what_differs_between_two_runs_is_no_change() -> None:
    again = copy.deepcopy(ANSWER)
    again["metadata"] = {"took_ms": 9, "path": f"{FOLDER}/two/y"}
    again["results"][0]["score"] = 0.512339
    assert not [*differences({"one": kept(200, ANSWER)}, {"one": kept(200, again)})]
