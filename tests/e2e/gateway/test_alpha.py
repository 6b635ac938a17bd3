"""The weight of meaning against words."""

import pytest

from tests.e2e.gateway.machines import Machine
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-003")

# By meaning the calendar, by its word "city" the weather.
QUERY = "cancel my appointment in the city"
DELETE, FORECAST = "calendar__delete_event", "weather__get_forecast"

Found = list[tuple[str, float]]


def found(machine: Machine, alpha: str | None) -> Found:
    told = machine if alpha is None else machine.also(TOOLSCRIPT_SEARCH_ALPHA=alpha)
    results = told.json("search", QUERY, "--threshold", "0", "--limit", "10")["results"]
    return [(one["toolId"], one["confidence"]) for one in results]


@scenario("Configure semantic weight (alpha) via environment")
@scenario("Default alpha value")
@pytest.mark.states("S1-004", "S1-123", "S1-125", "S1-126")
def test_the_weight_of_meaning_decides_which_arm_is_heard_and_is_0_7_unless_told(furnished: Machine) -> None:
    words, default, same, more, meaning = (
        found(furnished.here(), alpha) for alpha in ("0", None, "0.7", "0.8", "1")
    )
    assert (words[0][0], meaning[0][0]) == (FORECAST, DELETE)
    assert default == same
    assert dict(default)[DELETE] < dict(more)[DELETE] < dict(meaning)[DELETE]
