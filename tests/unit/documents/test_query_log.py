"""Entries of the query log have what the setting keeps."""

import pytest

from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.retrieval.query import Fusion
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.filters import FieldCondition, Filters
from toolscript.documents.model.query import DocumentQuery, LogDetail, LoggedQuery
from toolscript.documents.query_log import log_entry

pytestmark = [pytest.mark.requirement("DOC-007")]

CALLER = Principal(Tenant("ann"), Plan("small"), subject="a-person")
QUERY = DocumentQuery(
    "who has my keys",
    top_k=7,
    fusion=Fusion.RRF,
    filters=Filters(must=(FieldCondition.of("secret_field", "eq", "secret_value"),)),
)
HITS = (DocumentHit("0" * 24, "doc-1", 0.5, {"owner": "somebody"}), DocumentHit("1" * 24, "doc-2", 0.25, {}))
ANSWER = DocumentAnswer(HITS, Total(41, Exactness.ABOUT), degraded=("embedding",), reranked_by="a-model")


def _entry(keeps: LogDetail) -> LoggedQuery:
    return log_entry(CALLER, QUERY, ANSWER, keeps, at="2026-01-31T12:00:00+00:00", query_id="q", took_ms=1.5)


def test_metrics_only_entries_have_no_query_text_and_no_results() -> None:
    metrics = _entry(LogDetail.FIGURES)
    assert (metrics.text, metrics.found) == ("", ())
    assert (metrics.tenant, metrics.plan, metrics.filters, metrics.top_k) == ("ann", "small", 1, 7)
    assert (metrics.search_type, metrics.fusion, metrics.hits, metrics.total) == ("hybrid", "rrf", 2, 41)
    assert (metrics.degraded, metrics.reranked_by, metrics.took_ms) == (("embedding",), "a-model", 1.5)


@pytest.mark.parametrize(
    ("keeps", "text", "found"),
    [
        (LogDetail.FIGURES, "", ()),
        (LogDetail.TEXT, "who has my keys", ()),
        (LogDetail.RESULTS, "who has my keys", ("doc-1", "doc-2")),
    ],
)
def test_the_setting_determines_what_is_kept(keeps: LogDetail, text: str, found: tuple[str, ...]) -> None:
    kept = _entry(keeps)
    assert (kept.text, kept.found) == (text, found)
    assert not {"secret_field", "secret_value", "somebody", "a-person"} & set(repr(kept).split("'"))
