"""Iterables are split into batches."""

import pytest

from toolscript.core.values import in_batches


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_batches_are_full_but_for_the_last_and_never_empty(count: int, sizes: list[int]) -> None:
    batches = list(in_batches(iter(range(count)), 3))
    assert [len(batch) for batch in batches] == sizes
    assert [number for batch in batches for number in batch] == list(range(count))


def test_a_batch_size_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        next(in_batches([1], 0))
