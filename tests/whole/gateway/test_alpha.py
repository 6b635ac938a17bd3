"""The weight of meaning against words."""

import pytest

from tests.whole.gateway.machines import Machine
from tests.whole.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-003")

# By meaning the calendar, by its word "get" the weather.
QUERY = "get rid of a meeting"
DELETE, FORECAST = "calendar__delete_event", "weather__get_forecast"


def order(machine: Machine, alpha: str | None) -> list[str]:
    told = machine if alpha is None else machine.also(TOOLSCRIPT_SEARCH_ALPHA=alpha)
    return [one["toolId"] for one in told.json("search", QUERY, "--threshold", "0", "--limit", "10")["results"]]


@scenario("Configure semantic weight (alpha) via environment")
@scenario("Default alpha value")
def test_the_weight_of_meaning_decides_which_arm_is_heard_and_is_0_7_unless_told(furnished: Machine) -> None:
    words, usual, same, mixed = (order(furnished, alpha) for alpha in ("0", None, "0.7", "0.8"))
    assert words[0] == FORECAST
    assert usual[:2] == [DELETE, FORECAST]
    assert usual == same
    assert mixed[0] == DELETE
    assert mixed.index(FORECAST) > 1
