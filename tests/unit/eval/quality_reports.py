"""Reports with given values, for the quality page."""

from collections.abc import Mapping
from dataclasses import replace

from toolscript_eval.dataset import CurvePoint, EvalReport, Measure, SystemReport, SystemRole

PLAIN: Mapping[str, float] = {"BM25": 0.61, "dense": 0.52, "RRF": 0.64, "z-score": 0.66}
CURVE = tuple(CurvePoint(number / 20, number / 20, None, number / 40) for number in range(20))
SURE = {"calibration_error": 0.08, "false_refusals": 0.03, "refused_without_gold": 0.44}
SPENT = {"p50_ms:total": 9.5, "p95_ms:total": 21.25, "p50_ms:embedding": 4.0, "p95_ms:embedding": 8.0}
HOSTILE = (
    '</text><script>alert("1")</script> a|b `c` **d** [e](http://f) <g> & \\| _h_ \n# i \x1b[31m \u202e \ud800'
)


def measure(value: float, half: float = 0.02) -> Measure:
    return Measure(value, value - half, value + half, 4)


def system(
    name: str, ndcg: float, role: SystemRole = SystemRole.ENGINE, others: Mapping[str, float] | None = None
) -> SystemReport:
    """Return a system report; two of its four queries are a little better than the mean, and two as much worse."""
    of_all = {"ndcg@10": ndcg, "recall@1": ndcg - 0.1, "recall@5": ndcg + 0.1, "mrr": ndcg, "hit@1": ndcg}
    by_query = {f"q{number}": ndcg + (0.01 if number % 2 else -0.01) for number in range(4)}
    return SystemReport(
        name, {key: measure(value) for key, value in (of_all | dict(others or {})).items()}, by_query, role
    )


def report(
    dataset: str = "small",
    engine: str = "gateway",
    ndcg: float = 0.7,
    *,
    distractors: str = "",
    plain: Mapping[str, float] = PLAIN,
    parts: Mapping[str, float] | None = None,
    others: Mapping[str, float] | None = None,
    peers: Mapping[str, float] | None = None,
) -> EvalReport:
    """Return a report; `others` are further measures of the engine, `parts` is nDCG@10 without a part."""
    baselines = [system(name, value, SystemRole.BASELINE) for name, value in plain.items()]
    others_code = [
        replace(system(name, value, SystemRole.PEER), note=f"{name} 1.0") for name, value in (peers or {}).items()
    ]
    off = [system(f"without {name}", value, SystemRole.ABLATED) for name, value in (parts or {}).items()]
    return EvalReport(
        dataset=dataset,
        distractors=distractors,
        engine=engine,
        model="some-model",
        items=1234,
        queries=4,
        unanswerable=0,
        systems=(system(engine, ndcg, others=SURE | SPENT | dict(others or {})), *baselines, *others_code, *off),
        curve=CURVE,
    )


def with_ndcg(original: EvalReport, ndcg: Measure) -> EvalReport:
    """Return the report with another nDCG@10 of the engine."""
    engine = replace(original.systems[0], measures={**original.systems[0].measures, "ndcg@10": ndcg})
    return replace(original, systems=(engine, *original.systems[1:]))
