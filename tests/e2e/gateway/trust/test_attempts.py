"""No attempt to start a program or send a secret without consent succeeds."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.gateway.machines import Machine
from tests.e2e.gateway.trust import moved_files, odd_files
from tests.e2e.gateway.trust.attempts import AS_ROOT, ATTEMPTS, Attempt
from tests.e2e.gateway.trust.traps import Trap, set_up

pytestmark = pytest.mark.requirement("TR-001")


@pytest.fixture
def trap(machine: Machine) -> Iterator[Trap]:
    with set_up(machine) as trap:
        yield trap


@pytest.mark.parametrize("tried", ATTEMPTS, ids=lambda one: one.__name__)
def test_nothing_starts_unasked(trap: Trap, tried: Attempt) -> None:
    tried(trap, trap.machine.project)
    assert trap.sprung() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("tried", AS_ROOT, ids=lambda one: one.__name__)
def test_nothing_of_another_user_starts(trap: Trap, tried: Attempt) -> None:
    tried(trap, trap.machine.project)
    assert trap.sprung() == []


def test_there_are_forty_ways_and_more() -> None:
    assert {attempt.__module__ for attempt in ATTEMPTS} == {moved_files.__name__, odd_files.__name__}
    assert len(ATTEMPTS) + len(AS_ROOT) >= 40


def test_the_trap_works(trap: Trap) -> None:
    """Otherwise nothing above could fail."""
    path = trap.put(trap.machine.project)
    trap.trust(path)
    trap.look()
    assert len(trap.sprung()) >= 2
    assert any(b"the-secret-of-the-tests" in item for item in trap.received)


def _commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "search", ("search", "read a file", "--json")
    yield "refresh", ("search", "read a file", "--refresh")
    yield "list_servers", ("list-servers",)
    yield "list_tools", ("list-tools",)
    yield "list_tools_anew", ("list-tools", "--refresh")
    yield "get_types", ("get-types",)
    yield "call", ("call", "build__run")
    yield "doctor", ("doctor",)
    yield "trust_without_a_terminal", ("trust",)
    yield "config_import", ("config", "import", "--yes")


@pytest.mark.parametrize("words", [words for _, words in _commands()], ids=[name for name, _ in _commands()])
def test_no_command_starts_it(trap: Trap, words: tuple[str, ...]) -> None:
    path = trap.put(trap.machine.project)
    message = trap.look(None, *words)
    assert trap.sprung() == []
    if words[0] not in ("config", "trust"):
        assert f"toolscript trust {path}" in message
