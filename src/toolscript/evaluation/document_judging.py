"""A judged set as one tenant's documents, asked in every way to search: by meaning, by words, and by both."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolscript.errors import InvalidRequest
from toolscript.evaluation import measuring
from toolscript.evaluation.measuring import Answered
from toolscript.evaluation.metrics import DEPTH
from toolscript.evaluation.report_json import paired
from toolscript.model.items import Item
from toolscript.model.judged import EvalReport, Given, JudgedSet, SystemReport, SystemRole
from toolscript.model.progress import OnProgress, Progress, silent

OURS = "our ranking"
# What is sent with each query, the way that is chosen where nobody chooses first.
WAYS: Mapping[str, Mapping[str, str]] = {
    OURS: {"search_type": "hybrid", "fusion": "best"},
    "semantic": {"search_type": "semantic"},
    "keyword": {"search_type": "keyword"},
    "hybrid rrf": {"search_type": "hybrid", "fusion": "rrf"},
    "hybrid zscore": {"search_type": "hybrid", "fusion": "zscore"},
}
AT_ONCE = 200


class DocumentApi(Protocol):
    """Documents of one tenant."""

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None: ...
    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> Sequence[str]:
        """Ids, best first."""


async def judge_documents(
    api: DocumentApi, judged: JudgedSet, *, model: str, seed: int = 0, on_progress: OnProgress = silent
) -> EvalReport:
    """Query by query in every way, so that all of them see the same documents at the same time."""
    queries = [query for query in judged.queries if query.answerable]
    if not queries:
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    await _put(api, judged.items, on_progress)
    answered: dict[str, list[Answered]] = {name: [] for name in WAYS}
    for done, query in enumerate(queries, 1):
        for name, way in WAYS.items():
            found = await api.search(query.text, DEPTH, way)
            answered[name].append(Answered(query, Given(tuple(found))))
        on_progress(Progress("ask", done, len(queries)))
    return EvalReport(
        dataset=judged.name,
        distractors=judged.distractors,
        engine="documents",
        model=model,
        items=len(judged.items),
        queries=len(queries),
        unanswerable=0,
        systems=tuple(_report(name, given, seed) for name, given in answered.items()),
        seed=seed,
    )


def differences_text(report: EvalReport) -> str:
    """Our ranking beside each of the others, query by query."""
    ours, *others = report.systems
    lines = [f"{ours.system + ' less':28}nDCG@10, query by query"]
    for other in others:
        difference = paired(other, ours, report.seed)
        if difference is not None:
            interval = f"({difference.low:+.4f} to {difference.high:+.4f})"
            lines.append(f"{other.system:28}{difference.value:+.4f}  {interval}")
    return "\n".join(lines)


async def _put(api: DocumentApi, items: Sequence[Item], on_progress: OnProgress) -> None:
    for at in range(0, len(items), AT_ONCE):
        await api.put([_document(item) for item in items[at : at + AT_ONCE]])
        on_progress(Progress("put", min(at + AT_ONCE, len(items)), len(items)))


def _document(item: Item) -> dict[str, object]:
    return {"id": item.key, "title": item.name, "text": item.description}


def _report(name: str, answered: Sequence[Answered], seed: int) -> SystemReport:
    role = SystemRole.ENGINE if name == OURS else SystemRole.BASELINE
    return SystemReport(name, measuring.ranking_measures(answered, seed), measuring.ndcg_by_query(answered), role)
