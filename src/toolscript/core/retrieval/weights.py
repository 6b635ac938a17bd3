"""How much each part of the ranking counts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from toolscript.errors import InvalidRequest
from toolscript.search.ranking.confidence import Calibration, numbers_of

# What a spread of word scores is worth in spreads of cosines: fitted, and far from one, because word scores have
# longer tails.
WORTH_OF_WORDS = 14 / 9


@dataclass(frozen=True)
class Recipe:
    """The weights of the parts; the two arms share a weight of one, and `meaning` weighs the vectors against the
    words: 0, words alone; 1, meaning alone.

    `wishes`: how far the best single wish of a request for several replaces the whole.
    `coverage`: of all words said, times how large the catalog is: in a small one a word proves little.
    `said`: of the words that are no values. `name`: of the name's letters in the request.
    `action`: creating is not deleting. `subject`: of the words that say what the wish is about.
    """

    meaning: float = 0.7
    wishes: float = 0.56
    coverage: float = 1.61
    said: float = 2.09
    name: float = 1.35
    action: float = 0.47
    subject: float = 0.69
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def share_of_meaning(self) -> float:
        """What the dense arm has of the arms' common weight."""
        words = (1 - self.meaning) * WORTH_OF_WORDS
        return self.meaning / (self.meaning + words)

    def without(self, part: str) -> "Recipe":
        """The same with one part off; an arm that is off leaves the whole word to the other."""
        values = vars(self) | ({"meaning": 1.0} if part == "words" else {part: 0.0})
        return Recipe(**values)


DEFAULT_RECIPE = Recipe()

PARTS = (*(one.name for one in fields(Recipe) if one.name != "calibration"), "words")


# `held_out` names the set a recipe was fitted without.
NO_WEIGHTS = ("calibration", "held_out")


def recipe_to_json(recipe: Recipe) -> dict[str, object]:
    return asdict(recipe)


def recipe_from_json(data: object) -> Recipe:
    """As `eval fit` has written it, or a person has changed it."""
    if not isinstance(data, Mapping):
        raise InvalidRequest("a recipe must be a JSON object")
    try:
        weights = numbers_of({name: value for name, value in data.items() if name not in NO_WEIGHTS})
        if not 0 <= weights.get("meaning", 0.0) <= 1 or min(weights.values(), default=0.0) < 0:
            raise ValueError("meaning must be 0 to 1, and no weight below 0")
        return Recipe(**weights, calibration=Calibration.from_json(data.get("calibration", {})))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"this is no recipe: {error}", hint="write one with `toolscript eval fit`") from error
