"""The good-match verdict by kind of unanswerable queries: figures, and the trade-off as its threshold moves."""

from collections.abc import Sequence

import numpy as np

from toolscript_eval.dataset import TradeOff, Verdict
from toolscript_eval.metrics import (
    JudgedAnswer,
    Numbers,
    answerable,
    has_confidence,
    unanswerable,
    verdict_measures,
    verdict_scores,
)

KIND = "kind"
UNANSWERABLE = "unanswerable"
# More points are not seen in a plot, and a report stays small.
MAX_POINTS = 101


def verdicts_of(answered: Sequence[JudgedAnswer], seed: int) -> tuple[Verdict, ...]:
    """Return a verdict per value of the field `kind` among the unanswerable queries, the most frequent first.

    Queries without the field are of the kind `unanswerable`. Every kind is compared with all answerable queries.
    """
    by_kind: dict[str, list[JudgedAnswer]] = {}
    for judged in unanswerable(answered):
        by_kind.setdefault(judged.query.labels.get(KIND) or UNANSWERABLE, []).append(judged)
    if not has_confidence(answered):
        return ()
    fits = answerable(answered)
    return tuple(
        Verdict(
            kind,
            len(part),
            verdict_measures(fits, part, seed),
            trade_off(verdict_scores(fits), verdict_scores(part)),
        )
        for kind, part in sorted(by_kind.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    )


def trade_off(fits: Numbers, nothing_fits: Numbers) -> tuple[TradeOff, ...]:
    """Return what the thresholds refuse, from the one that answers everything to one that refuses everything.

    The thresholds are scores that occur, evenly spread among them: a score may use a small part of its range.
    """
    scores = np.unique(np.concatenate([fits, nothing_fits]))
    thresholds = np.append(scores, np.nextafter(scores[-1], np.inf))
    picked = np.unique(np.linspace(0, len(thresholds) - 1, MAX_POINTS).round().astype(np.int64))
    return tuple(
        TradeOff(minimum, float((fits < minimum).mean()), float((nothing_fits >= minimum).mean()))
        for minimum in thresholds[picked].tolist()
    )
