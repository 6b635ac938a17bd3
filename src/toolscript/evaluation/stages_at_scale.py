"""How long the stages of a whole search take in a large index and in a small one, asked in turn."""

from collections.abc import Sequence

from toolscript.evaluation.index_at_scale import SmallAndLarge
from toolscript.model.measurements import Latency
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.queries import Strategy, ToolQuery
from toolscript.model.results import Timings
from toolscript.search.tools import ToolSearch

WARM_UP = 20


async def measure_stages(
    small: ToolSearch, large: ToolSearch, texts: Sequence[str], on_progress: OnProgress = silent
) -> dict[str, SmallAndLarge]:
    """By stage. Each text is new to both, so nothing helps but what helps in real life."""
    times: dict[tuple[str, str], list[float]] = {}
    for done, text in enumerate(texts):
        query = ToolQuery(text, threshold=0.0, strategy=Strategy.HIERARCHICAL, include_schemas=False)
        for size, search in (("small", small), ("large", large)):
            spent = (await search.search(query)).timings
            if done >= WARM_UP:
                for stage, milliseconds in _stages(spent).items():
                    times.setdefault((stage, size), []).append(milliseconds)
        on_progress(Progress("stages", done + 1, len(texts)))
    return {
        stage: SmallAndLarge(*(Latency.of(size, times[stage, size]) for size in ("small", "large")))
        for stage in dict.fromkeys(stage for stage, _ in times)
    }


def _stages(spent: Timings) -> dict[str, float]:
    return {
        "skills": spent.skill_search,
        "items": spent.tool_search - spent.ranking,
        "both": spent.skill_search + spent.tool_search - spent.ranking,
    }
