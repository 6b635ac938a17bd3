"""The verdict of a search among texts, documents or chunks of a library: whether anything fits the query.

The best of many unrelated texts is nearer than the best of few. So the more chunks are searched, the nearer the
best text has to be, or the more of the query's words it has to have. This tells another subject from that of the
texts; it does not tell whether a text on the subject has the answer.
"""

import math
from collections.abc import Mapping

import numpy as np

from toolscript.core.retrieval.fusion import RankedLists
from toolscript.core.retrieval.verdict import LARGE, CosineScale

# What the best of unrelated texts reaches, alone and for each power of ten of the chunks. Fitted to claims about
# scientific abstracts, to requests for described tools, and to hundreds of requests that none of these serves.
ALONE, PER_TENFOLD = 0.28, 0.15
# The offset of a model is one of the logit of tools; a relative cosine needs this share of it.
OFFSET_SHARE = 0.2


def any_text_fits(
    ranked_lists: RankedLists, max_sparse_score: float, chunks: float, scale: CosineScale | None
) -> bool | None:
    """Return whether any text fits; None unless both retrievers answered, and the scale says what cosines mean.

    A single retriever does not tell: cosines are low for a query of few words, and words miss what is said with
    others. `max_sparse_score` bounds a sparse score; `chunks` is how many chunks were searched.
    """
    if ranked_lists.dense is None or ranked_lists.words is None or scale is None or not scale.is_trusted:
        return None
    return (
        text_fit(ranked_lists.dense.top_scores, ranked_lists.words.top_scores, max_sparse_score, chunks, scale) > 0
    )


def text_fit(
    cosines: Mapping[str, float],
    words: Mapping[str, float],
    max_sparse_score: float,
    chunks: float,
    scale: CosineScale,
) -> float:
    """Return how far the best text is above the best of as many unrelated ones: above 0 is a good match."""
    if not cosines:
        return -math.inf
    # A text without a dense score is farther than all that have one.
    nearest, farthest = max(cosines.values()), min(cosines.values())
    nearness = scale.relative(np.array([nearest, *(cosines.get(key, farthest) for key in words)]))
    shares = np.array([0.0, *words.values()]) / max(max_sparse_score, 1e-9)
    unrelated = ALONE + PER_TENFOLD * min(LARGE, math.log10(max(1.0, chunks)))
    return float((nearness + shares).max()) + OFFSET_SHARE * scale.offset - unrelated
