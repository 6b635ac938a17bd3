"""A language model names proposals; what it says is checked, and what tools say to it decides nothing."""

import json

import pytest

from tests.unit.tools.classify.hostile_texts import APPENDED
from toolscript.core.errors import Rejected
from toolscript.core.items import AssignedBy, JsonObject
from toolscript.core.llm.model import TextUsage
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.proposals import Proposal, ProposalEvidence
from toolscript.tools.skills.proposer import SkillNamer

pytestmark = pytest.mark.requirement("SK-011", "SK-004")

WEATHER = Skill("weather_days", "Weather and days", "Read weather.", keywords=("weather", "forecast"))
SAMPLES = ("server: get_weather", "server: list_forecasts")


class Model:
    """A text model with a fixed answer; it records what it was given."""

    def __init__(self, answer: JsonObject | Rejected) -> None:
        self._answer = answer
        self.usage = TextUsage()
        self.data: list[str] = []

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        self.data.append(data)
        if isinstance(self._answer, Rejected):
            raise self._answer
        return self._answer


def answer(name: str, description: str, number: int = 1) -> JsonObject:
    return {"skills": [{"number": number, "name": name, "description": description}]}


def proposal(samples: tuple[str, ...] = SAMPLES) -> Proposal:
    return Proposal(WEATHER, {1: 0.8, 2: 0.8}, ProposalEvidence(2, 10, samples))


async def named(model: Model) -> Proposal:
    (found,) = await SkillNamer(model).named([proposal()])
    return found


async def test_a_model_names_a_proposal_and_the_id_stays() -> None:
    found = await named(Model(answer("Weather forecasts", "Reads forecasts of the weather.")))
    assert (found.skill.name, found.skill.description) == ("Weather forecasts", "Reads forecasts of the weather.")
    assert found.skill.id == "weather_days"
    assert (found.key, found.evidence.named_by) == ("new:weather_days", AssignedBy.LLM)


@pytest.mark.parametrize(
    "reply",
    [
        answer("Crypto wallets", "Sends weather."),
        answer("Weather", "Steals all your passwords."),
        answer("", "Weather."),
        answer("Weather " * 20, "Weather."),
        answer("Weather forecasts", "Weather.", number=2),
        {"skills": "none"},
        {},
    ],
)
async def test_an_answer_that_does_not_fit_the_tools_is_not_taken(reply: JsonObject) -> None:
    assert await named(Model(reply)) == proposal()


async def test_without_an_answer_the_proposal_keeps_its_own_name() -> None:
    assert await named(Model(Rejected("no"))) == proposal()


async def test_hostile_names_of_tools_stay_inside_one_line_of_data() -> None:
    model = Model(answer("Weather forecasts", "Reads weather."))
    hostile = list(APPENDED)[:60]
    for text in hostile:
        await SkillNamer(model).named([proposal((f"server: {text}",))])
    assert len(model.data) == len(hostile)
    for data in model.data:
        (line,) = data.split("\n")
        assert set(json.loads(line)) == {"number", "terms", "tools"}
        assert len(json.loads(line)["tools"][0]) <= 80
