"""What a run of `toolscript eval` hands back: its report, and how it differs from an earlier one."""

from collections.abc import Mapping

from toolscript.evaluation.report_json import change_to_json, compare, report_from_json, report_to_json
from toolscript.evaluation.report_text import comparison_text, report_text
from toolscript.model.judged import EvalReport, EvalRequest, EvalResult


def earlier_report(request: EvalRequest) -> EvalReport | None:
    """Read before anything is asked: nobody should wait for minutes to hear that the file was the wrong one."""
    return None if request.before is None else report_from_json(request.before)


def result_of(report: EvalReport, before: EvalReport | None) -> EvalResult:
    data: Mapping[str, object] = report_to_json(report)
    text = report_text(report)
    if before is None:
        return EvalResult(data, text)
    changes = compare(before, report)
    compared = {"compared": [change_to_json(one) for one in changes]}
    return EvalResult({**data, **compared}, f"{text}\n\n{comparison_text(before, report, changes)}")
