"""An engine that hangs takes only its own work along, and is used again as soon as it answers."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chaos.hung_engine import REQUESTS, Answer, Run, filled, measure, p95, served, slowest
from tests.support.own_engines import MONGO, POSTGRES, QDRANT, OwnEngines, own_engines

ENGINES = (QDRANT, POSTGRES, MONGO)
AT_ONCE_SECONDS, TIMES_BEFORE = 0.05, 2.0
# What a busy machine may add to one of a few requests. To wait for the engine takes more.
JITTER_SECONDS = 1.0


@dataclass(frozen=True)
class Hangable:
    url: str
    engines: OwnEngines


@pytest.fixture(scope="module")
def service(model_folder: str) -> Iterator[Hangable]:
    with own_engines() as engines, filled(engines, model_folder) as installation, served(installation) as url:
        yield Hangable(url, engines)


def check(run: Run) -> None:
    for request in REQUESTS:
        before = max(p95(run.before(request)) * TIMES_BEFORE, JITTER_SECONDS)
        if run.engine in request.needs:
            _check_refused(run, run.once_open(request), before)
        elif run.engine in request.engines:
            # It goes on without the engine, or with what it has read before.
            assert all(answer.status == 200 for answer in run.meanwhile(request)), run.table()
            assert slowest(run.once_open(request)) < before + AT_ONCE_SECONDS, run.table()
        elif request.name != "ready":
            assert all(answer.status == 200 for answer in run.meanwhile(request)), run.table()
            assert p95(run.meanwhile(request)) < before, run.table()
        after = run.whole_again(request)
        assert after, run.table()
        assert all(answer.status == 200 and not answer.degraded for answer in after), run.table()


def _check_refused(run: Run, answers: list[Answer], before: float) -> None:
    assert answers, run.table()
    for answer in answers:
        assert (answer.status, answer.retry_after) == (503, "1"), answer
        assert answer.took < before + AT_ONCE_SECONDS, run.table()


@pytest.mark.alone
@pytest.mark.requirement("API-002", "EC-009", "OP-006")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_hangs_takes_only_its_own_work_along(service: Hangable, engine: str) -> None:
    check(asyncio.run(measure(service.url, service.engines, engine, 6.0)))


@pytest.mark.alone
@pytest.mark.nightly
@pytest.mark.requirement("API-002", "EC-009", "OP-006")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_hangs_for_long_takes_only_its_own_work_along(service: Hangable, engine: str) -> None:
    check(asyncio.run(measure(service.url, service.engines, engine, 30.0)))
