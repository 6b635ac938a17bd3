"""The one ranking: what a request asks for, how candidates stand, and how sure that is. Both engines use it."""

from toolscript.search.ranking.confidence import Calibration
from toolscript.search.ranking.first_look import CANDIDATES_PER_ARM
from toolscript.search.ranking.rank import Ranking, rank, unmatched_words
from toolscript.search.ranking.recipe import DEFAULT_RECIPE, Recipe
from toolscript.search.ranking.request import Request, read_request
from toolscript.search.ranking.second_look import LOOKED_AT
from toolscript.search.ranking.traits import Traits

__all__ = [
    "CANDIDATES_PER_ARM",
    "DEFAULT_RECIPE",
    "LOOKED_AT",
    "Calibration",
    "Ranking",
    "Recipe",
    "Request",
    "Traits",
    "rank",
    "read_request",
    "unmatched_words",
]
