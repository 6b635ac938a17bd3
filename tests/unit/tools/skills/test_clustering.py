"""Clusters hold rows about one thing, none too large, and none too small while another has room."""

import numpy as np
import pytest

from toolscript.core.retrieval.model import Matrix
from toolscript.tools.skills.clustering import ClusterLimits, cluster, dissolved, unit_rows

pytestmark = pytest.mark.requirement("SK-011")

DIMENSIONS = 16


def around(axes: list[int], count: int, spread: float = 0.1) -> Matrix:
    """Return rows near each of these axes, `count` of each."""
    noise = np.random.default_rng(7).normal(size=(len(axes) * count, DIMENSIONS)) * spread
    rows = np.repeat(np.eye(DIMENSIONS)[axes], count, axis=0)
    return unit_rows(rows + noise)


def test_a_cluster_of_two_things_is_split_although_fewer_were_aimed_at() -> None:
    labels = cluster(around([0, 1, 2], 10), ClusterLimits(count=2, max_size=30, min_size=3))
    assert [len(set(labels[start : start + 10])) for start in (0, 10, 20)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_rows_of_one_thing_stay_together() -> None:
    assert set(cluster(around([0], 20), ClusterLimits(count=1, max_size=30, min_size=3))) == {0}


@pytest.mark.parametrize("max_size", [4, 7, 11])
def test_no_cluster_is_too_large(max_size: int) -> None:
    labels = cluster(around([0, 1], 20, spread=0.4), ClusterLimits(count=2, max_size=max_size, min_size=3))
    assert np.bincount(labels).max() <= max_size


def test_too_few_rows_of_a_thing_join_the_nearest() -> None:
    rows = np.concatenate([around([0, 1], 8), around([2], 2)])
    labels = cluster(rows, ClusterLimits(count=3, max_size=20, min_size=4))
    assert np.bincount(labels).min() >= 8


@pytest.mark.parametrize(
    ("max_size", "expected"),
    [(3, [0, 0, 0, 1]), (2, [0, 0, 1, 1]), (1, [0, 0, 0, 1])],
    ids=["the nearest", "the nearest with room", "no room: the nearest"],
)
def test_rows_of_a_dissolved_cluster_go_where_there_is_room(max_size: int, expected: list[int]) -> None:
    rows = unit_rows(np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1]], dtype=np.float64))
    labels = np.array([0, 0, 1, 2], dtype=np.int32)
    assert dissolved(rows, labels, np.array([1]), max_size).tolist() == expected
    assert dissolved(rows, labels, np.array([0, 1, 2]), max_size).tolist() == [0, 0, 1, 2], "there is no other"
