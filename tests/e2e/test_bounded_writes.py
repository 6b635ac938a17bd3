"""The cost of one change does not grow with the catalog. tests/e2e/bounded_writes.py does it at any size."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.bounded_writes import Touched, run
from toolscript.core.settings.service import Settings


@contextmanager
def fresh(engines: Settings, template: str) -> Iterator[Installation]:
    with fresh_database(engines, template) as url, fresh_installation(engines, url, "hash") as installation:
        yield installation


@pytest.mark.skipif(
    bool(os.environ.get("TOOLSCRIPT_TEST_PGBOUNCER")),
    reason="a session reports what it wrote when it is idle, and a pooler hands it on before",
)
@pytest.mark.requirement("SK-007")
def test_one_change_touches_as_many_rows_and_points_in_a_large_skill_as_in_a_small_one(
    engines: Settings, migrated_database: str
) -> None:
    with fresh(engines, migrated_database) as few, fresh(engines, migrated_database) as many:
        small = asyncio.run(run(few.settings, 12, 5))
        large = asyncio.run(run(many.settings, 400, 5))
    assert {what: written(item) for what, item in small.items()} == {
        what: written(item) for what, item in large.items()
    }
    assert max(sum(item.rows.values()) for item in large.values()) <= 30


def written(one: Touched) -> tuple[object, int, int]:
    return one.rows, one.points, one.skill_points
