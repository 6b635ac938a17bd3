"""What a run of `toolscript eval` hands back: its report, and how it differs from an earlier one."""

from collections.abc import Mapping
from dataclasses import replace

from toolscript.evaluation.report_json import change_to_json, compare, report_from_json, report_to_json
from toolscript.evaluation.report_text import comparison_text, report_text
from toolscript.model.judged import EvalReport, EvalRequest, EvalResult
from toolscript.search.ranking.recipe import Recipe, recipe_from_json


def earlier_report(request: EvalRequest) -> EvalReport | None:
    """Read before anything is asked: nobody should wait for minutes to hear that the file was the wrong one."""
    return None if request.before is None else report_from_json(request.before)


def recipe_of(request: EvalRequest, usual: Recipe) -> Recipe:
    return usual if request.recipe is None else recipe_from_json(request.recipe)


def result_of(judged: EvalReport, request: EvalRequest, before: EvalReport | None) -> EvalResult:
    left_out = (request.recipe or {}).get("held_out")
    report = replace(judged, held_out="weights fitted without it") if left_out == judged.dataset else judged
    data: Mapping[str, object] = report_to_json(report)
    text = report_text(report)
    if before is None:
        return EvalResult(data, text)
    changes = compare(before, report)
    compared = {"compared": [change_to_json(one) for one in changes]}
    return EvalResult({**data, **compared}, f"{text}\n\n{comparison_text(before, report, changes)}")
