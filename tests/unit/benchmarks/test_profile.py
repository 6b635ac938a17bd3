"""Profiles: stages and functions of sampled stacks, the sampler itself, and the flame graph."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree as ET

import pytest

from benchmarks.flame import flame_graph, folded
from benchmarks.profile import (
    LOOP,
    NATIVE,
    ONCE,
    OTHER,
    Profiled,
    blocks_of,
    functions_of,
    repeated,
    stage_of,
    stage_rows,
)
from benchmarks.sampler import Profile, Sampler, Stack, short_path, stack_of

HTTP, SEARCH = "starlette/routing.py:app", "toolscript/tools/search.py:search"
RANK, FIT = "toolscript/tools/item_stage.py:rank", "toolscript/core/retrieval/rerank.py:_fit"
STACKS: dict[Stack, float] = {
    ("asyncio/runners.py:run",): 2.0,
    ("asyncio/runners.py:run", HTTP): 4.0,
    ("asyncio/runners.py:run", HTTP, SEARCH, RANK, FIT): 6.0,
    ("asyncio/runners.py:run", HTTP, SEARCH, RANK, FIT, "re/__init__.py:compile"): 1.0,
    ("asyncio/runners.py:run", HTTP, SEARCH, RANK): 3.0,
}


@pytest.mark.parametrize(
    ("stack", "stage"),
    [
        ((), NATIVE),
        (("asyncio/runners.py:run",), LOOP),
        (("asyncio/runners.py:run", HTTP), "HTTP"),
        (("asyncio/runners.py:run", HTTP, SEARCH, RANK, FIT, "re/__init__.py:compile"), "ranking"),
        ((HTTP, "toolscript/tools/http/search.py:search"), "HTTP"),
        ((HTTP, "toolscript/tools/search.py:_answer"), "search"),
        (("json/__init__.py:loads",), OTHER),
    ],
)
def test_the_innermost_function_that_is_known_names_the_stage(stack: Stack, stage: str) -> None:
    assert stage_of(stack) == stage


def test_stages_add_up_to_the_whole_per_request() -> None:
    profiled = Profiled(Profile(STACKS, native_ms=8.0, samples=9), requests=2, wall_ms={})
    rows = {str(row["stage"]): row["CPU ms"] for row in stage_rows(None, profiled)}
    assert rows == {"ranking": 5.0, NATIVE: 4.0, "HTTP": 2.0, LOOP: 1.0, "whole": 12.0}
    compared = {str(row["stage"]): row["added"] for row in stage_rows(profiled, profiled)}
    assert set(compared.values()) == {0.0}


def test_functions_are_listed_by_their_own_time() -> None:
    first, *_ = functions_of(Profiled(Profile(STACKS, 0.0, 9), 2, {}))
    assert first == {"function": FIT, "own CPU ms": 3.0, "with callees": 3.5}


def test_what_a_process_does_once_is_left_out() -> None:
    once = ("threading.py:run", f"{ONCE}:load", "pydantic/main.py:build")
    kept = repeated(Profile({**STACKS, once: 700.0}, 1.0, 9))
    assert dict(kept.spent_ms) == STACKS
    assert kept.native_ms == 1.0


def test_a_profile_is_read_as_it_was_written() -> None:
    profile = Profile(STACKS, 1.5, 9)
    assert Profile.from_json(profile.to_json()) == profile


def test_stacks_that_begin_alike_are_one_box() -> None:
    whole = folded(blocks_of(STACKS))
    assert {name: box.spent for name, box in whole.callees.items()} == {LOOP: 2.0, "HTTP": 4.0, "ranking": 10.0}
    ranking = whole.callees["ranking"].callees[RANK]
    assert (ranking.spent, ranking.callees[FIT].spent) == (10.0, 7.0)


def test_the_flame_graph_is_the_same_svg_every_time_and_has_every_wide_box() -> None:
    drawn = flame_graph(blocks_of(STACKS), "CPU <of> a search", 2)
    assert drawn == flame_graph(blocks_of(dict(reversed(STACKS.items()))), "CPU <of> a search", 2)
    root = ET.fromstring(drawn)
    boxes = [box for box in root.iter("{http://www.w3.org/2000/svg}rect") if "box" in str(box.get("class"))]
    titles = {str(box[0].text): float(str(box.get("width"))) for box in boxes}
    assert titles[f"{FIT}: 3.500 ms"] == pytest.approx(titles["ranking: 5.000 ms"] * 0.7, abs=0.02)
    assert sum(width for title, width in titles.items() if ":" not in title[:-10]) == pytest.approx(860, abs=0.1)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="timers of threads are Linux's")
def test_cpu_time_is_that_of_the_function_that_took_it_and_waiting_is_none() -> None:
    sampler = Sampler()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(burn, 0.01).result()
        sampler.start()
        burn(0.2)
        time.sleep(0.1)
        pool.submit(burn, 0.1).result()
        profile = sampler.stop()
    spent = sum(
        milliseconds for stack, milliseconds in profile.spent_ms.items() if stack and stack[-1].endswith(":burn")
    )
    # A busy machine loses signals of the timer, and invents none.
    assert 100 < spent < 340
    assert profile.total_ms - spent < 60
    assert profile.samples > 5


def test_functions_are_named_by_package_and_without_what_starts_the_process() -> None:
    assert short_path("/x/lib/python3.11/site-packages/starlette/routing.py") == "starlette/routing.py"
    assert short_path("/x/src/toolscript/tools/search.py") == "toolscript/tools/search.py"
    assert short_path("/usr/lib/python3.11/asyncio/runners.py") == "asyncio/runners.py"
    assert stack_of([burn.__code__])[-1].endswith(":burn")
