"""How long the stages of a whole search take in a large index and in a small one, asked in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.errors import SetupError
from toolscript.evaluation.index_at_scale import SmallAndLarge
from toolscript.model.measurements import Latency
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.queries import Strategy, ToolQuery
from toolscript.model.results import Timings, ToolAnswer
from toolscript.search.tools import ToolSearch

WARM_UP = 20


@dataclass(frozen=True)
class StagesAtScale:
    """`routed` counts the searches in each index that were really routed by skills, of so many `searches`."""

    stages: Mapping[str, SmallAndLarge]
    routed: Mapping[str, int]
    searches: int


async def measure_stages(
    small: ToolSearch, large: ToolSearch, texts: Sequence[str], on_progress: OnProgress = silent
) -> StagesAtScale:
    """Each text is new to both, so nothing helps but what helps in real life."""
    times: dict[tuple[str, str], list[float]] = {}
    routed = {"small": 0, "large": 0}
    for done, text in enumerate(texts):
        query = ToolQuery(text, threshold=0.0, strategy=Strategy.HIERARCHICAL, include_schemas=False)
        for size, search in (("small", small), ("large", large)):
            answer = _whole(await search.search(query))
            if done >= WARM_UP:
                routed[size] += answer.strategy_used is Strategy.HIERARCHICAL
                for stage, milliseconds in _stages(answer.timings).items():
                    times.setdefault((stage, size), []).append(milliseconds)
        on_progress(Progress("stages", done + 1, len(texts)))
    stages = {
        stage: SmallAndLarge(*(Latency.of(size, times[stage, size]) for size in ("small", "large")))
        for stage in dict.fromkeys(stage for stage, _ in times)
    }
    return StagesAtScale(stages, routed, max(0, len(texts) - WARM_UP))


def _whole(answer: ToolAnswer) -> ToolAnswer:
    """A search without one of its parts is quick, and says nothing of the others."""
    if answer.degraded:
        raise SetupError(
            f"a search was degraded, without {', '.join(answer.degraded)}: its times are no measure",
            hint="run `toolscript doctor`, and measure when nothing else does",
        )
    return answer


def _stages(spent: Timings) -> dict[str, float]:
    return {
        "skills": spent.skill_search,
        "items": spent.tool_search - spent.ranking,
        "both": spent.skill_search + spent.tool_search - spent.ranking,
    }
