"""Schemas that cost much to check: they take bounded time and memory, and stop no other check."""

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from toolscript.core.argument_checks import mistakes_in, require_arguments_in_time
from toolscript.core.daemon_threads import DaemonThreads
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind
from toolscript.core.patterns import matcher

pytestmark = pytest.mark.requirement("TS-010")

MANY: dict[str, Any] = {"patternProperties": {rf"(?:\w{{40}}){{20}}K_{number}": {} for number in range(200)}}
KEPT = {"properties": {"x": {"allOf": [{"pattern": rf"(?:\w{{200}}{number})?"} for number in range(120)]}}}
SAME_NAMES = {"required": ["a"] * 100_000}
PLAIN = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def generated() -> Iterator[dict[str, Any]]:
    """Schemas with random costs: repetitions in repetitions, classes, many patterns, many places, references."""
    draw = random.Random(11)
    atoms = (r"\w", r"\W", r"\d", r"\p{L}", r"[^\w]", r"[\w.-]", ".", "(?i:k)", r"\S", "(a|b)", "[à-ÿ]", r"\b")
    for number in range(70):
        atom, outer, inner = draw.choice(atoms), draw.randint(1, 60), draw.randint(1, 60)
        pattern = f"(?:{atom}{{{inner}}}){{{outer}}}{draw.choice(('', '?', '*', '+'))}k{number}"
        many = draw.randint(1, 300)
        kinds: tuple[dict[str, Any], ...] = (
            {"properties": {"x": {"pattern": pattern}}},
            {"patternProperties": {f"{pattern}{one}": {} for one in range(many)}},
            {"properties": {"x": {"anyOf": [{"pattern": f"{pattern}{one}"} for one in range(many)]}}},
            {"required": [draw.choice("ab")] * 3_000},
            {"properties": {"x": {"enum": [[[one]] for one in range(3_000)]}}},
            {"$defs": {"r": {"allOf": [{"$ref": "#/$defs/r"}] * 3, "pattern": pattern}}, "$ref": "#/$defs/r"},
            {"properties": {f"p{one}": {"pattern": f"{atom}{{9}}{one}"} for one in range(many)}},
        )
        yield draw.choice(kinds)


def test_a_hostile_schema_takes_little_time_and_keeps_little_memory() -> None:
    program = (
        "import resource, time\n"
        "from tests.unit.core.test_schema_budget import KEPT, MANY, PLAIN, generated, mistakes_in\n"
        "assert mistakes_in({}, PLAIN)\n"
        "before, slowest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0\n"
        "for schema in [MANY, KEPT, *generated()]:\n"
        "    began = time.thread_time()\n"
        "    mistakes_in({'x': 'word' * 50, 'y': 1}, schema)\n"
        "    slowest = max(slowest, time.thread_time() - began)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, slowest)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    kilobytes, seconds = map(float, done.stdout.split())
    assert kilobytes < 50 * 1024
    assert seconds < 1.5


def test_patterns_that_people_write_are_still_enforced() -> None:
    for pattern, good, bad in (
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-31", "soon"),
        (r"^[a-zA-Z0-9_-]{1,64}$", "a_name", "a name"),
        (r"^#[0-9a-fA-F]{6}$", "#00ff00", "green"),
        (r"^[\w.+-]+@[\w-]+\.[\w.]+$", "a@b.example", "nobody"),
        (r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", "0" * 8 + "-0000" * 3 + "-" + "0" * 12, "x"),
    ):
        schema = {"properties": {"x": {"type": "string", "pattern": pattern}}}
        assert mistakes_in({"x": good}, schema) == []
        assert mistakes_in({"x": bad}, schema) != []


def test_one_pattern_that_costs_too_much_is_none() -> None:
    for pattern in (
        r"\w{200}1",
        r"(?:\w{40}){20}1",
        r"((a{50}){50}){50}",
        r"(?i)\p{L}{60}",
        "[" + "éà" * 90 + "]{90}",
    ):
        assert matcher(pattern) is None, pattern


def _item(schema: dict[str, Any]) -> Item:
    return Item("a__b", ItemKind.TOOL, "a", "b", input_schema=schema)


def test_a_schema_whose_check_takes_long_is_not_enforced_again() -> None:
    schema = {**SAME_NAMES, "properties": {"x": {"type": "string"}}}
    began = time.thread_time()
    mistakes_in({"x": 1}, schema)
    assert time.thread_time() - began < 1.0
    began = time.thread_time()
    assert mistakes_in({"x": 1}, schema) == []
    assert time.thread_time() - began < 0.01


async def test_a_check_that_finds_no_thread_refuses_nothing_and_says_nothing_about_its_schema() -> None:
    item, threads, free = _item(PLAIN), DaemonThreads("test", 1), threading.Event()
    blocked = asyncio.create_task(threads.run(free.wait))
    await asyncio.sleep(0)
    await require_arguments_in_time(item, {}, seconds=0.05, threads=threads)
    free.set()
    await blocked
    with pytest.raises(InvalidRequest, match="`path` is missing"):
        await require_arguments_in_time(item, {}, seconds=5.0, threads=threads)
