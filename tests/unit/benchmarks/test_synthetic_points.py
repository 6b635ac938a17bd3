"""Generated points look like real ones, and are the same ones every time."""

import numpy as np

from benchmarks.synthetic import real_points, synthetic_points
from toolscript.testing import HashEmbedder


async def test_lookalikes_stay_near_a_real_item_and_repeat_exactly() -> None:
    words = [f"word{number} thing{number % 7}" for number in range(60)]
    vectors = await HashEmbedder().embed_texts(words)
    real = real_points(vectors, [{number: 1.0, 1000 + number: 2.0} for number in range(60)])
    first, second = (
        [point for batch in synthetic_points(real, 250, batch=100) for point in batch] for _ in range(2)
    )
    assert [point.id for point in first] == list(range(1, 251))
    assert all(float((vectors @ point.vector).max()) > 0.8 for point in first)
    assert all(np.array_equal(item.vector, other.vector) for item, other in zip(first, second, strict=True))
    assert [point.fields for point in first] == [point.fields for point in second]
    kinds = [point.fields["type"] for point in first]
    assert kinds.count("tool") > 200
