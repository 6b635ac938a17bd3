"""The weight of dense against sparse retrieval."""

import pytest

from tests.e2e.gateway.machines import Machine
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-003")

# Dense retrieval prefers the calendar, sparse retrieval the weather ("city").
QUERY = "scrap my appointment in the city"
DELETE, FORECAST = "calendar__delete_event", "weather__get_forecast"

Found = list[tuple[str, float]]


def found(machine: Machine, alpha: str | None) -> Found:
    output = machine if alpha is None else machine.also(TOOLSCRIPT_SEARCH_ALPHA=alpha)
    results = output.json("search", QUERY, "--threshold", "0", "--limit", "10")["results"]
    return [(result["toolId"], result["confidence"]) for result in results]


@scenario("Configure semantic weight (alpha) via environment")
@scenario("Default alpha value")
@pytest.mark.states("S1-004", "S1-123", "S1-125", "S1-126")
def test_the_dense_weight_decides_between_retrievers_and_defaults_to_0_7(furnished: Machine) -> None:
    words, default, same, more, meaning = (
        found(furnished.here(), alpha) for alpha in ("0", None, "0.7", "0.8", "1")
    )
    assert (words[0][0], meaning[0][0]) == (FORECAST, DELETE)
    assert default == same
    assert dict(default)[DELETE] < dict(more)[DELETE] < dict(meaning)[DELETE]
