"""Places that clients share: one that sends much waits for itself, and not another for it."""

import asyncio
from dataclasses import dataclass

import pytest

from toolscript.core.web.admission import (
    BUSY_SECONDS,
    COMPANY_SECONDS,
    MIN_CONCURRENT,
    SHARE,
    Gate,
    Limits,
    QueueTimeout,
    Ticket,
)
from toolscript.core.web.clients import MAX_TOKENS, Client, Clients

pytestmark = pytest.mark.requirement("OP-006")
MUCH, LITTLE = Client("tenant much"), Client("tenant little")


def scope_of(address: str = "192.0.2.1", **headers: str) -> dict[str, object]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"client": (address, 1), "headers": pairs}


def entered(gate: Gate, client: Client) -> Ticket:
    ticket = gate.enter(client)
    assert ticket is not None
    return ticket


async def test_the_only_request_of_a_client_begins_at_once_however_many_another_one_has_sent() -> None:
    gate = Gate(Limits(MIN_CONCURRENT * 3, max_queue_seconds=10.0))
    for _ in range(50):
        entered(gate, MUCH)
    assert not entered(gate, LITTLE).waits


async def test_a_free_place_goes_to_the_client_with_the_fewest_running() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=10.0))
    running = [entered(gate, MUCH) for _ in range(MIN_CONCURRENT)]
    waiting = [entered(gate, MUCH) for _ in range(5)]
    last = entered(gate, LITTLE)
    running[0].release()
    assert (last.waits, [ticket.waits for ticket in waiting]) == (False, [True] * 5)
    await last.turn()


async def test_clients_with_as_many_running_take_turns() -> None:
    gate = Gate(Limits(1, max_queue_seconds=10.0))
    running = entered(gate, Client("first"))
    waiting = [(name, entered(gate, Client(name))) for name in ("a", "a", "a", "b", "b", "b")]
    order = []
    while waiting:
        running.release()
        name, running = next(pair for pair in waiting if not pair[1].waits)
        waiting.remove((name, running))
        order.append(name)
    assert order == ["a", "b"] * 3


async def test_in_a_full_queue_the_longest_line_gives_way() -> None:
    gate = Gate(Limits(1, burst=10, burst_seconds=30.0))
    many = [entered(gate, MUCH) for _ in range(10)]
    assert gate.enter(MUCH) is None
    assert not gate.refuses(LITTLE)
    entered(gate, LITTLE)
    assert gate.waiting == 9
    with pytest.raises(QueueTimeout):
        await asyncio.wait_for(many[-1].turn(), 10)


async def test_a_client_has_no_more_running_than_its_plan_allows() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=10.0))
    limited = Client("tenant limited", at_once=2)
    tickets = [entered(gate, limited) for _ in range(4)]
    assert [ticket.waits for ticket in tickets] == [False, False, True, True]
    assert gate.has_all_it_may(limited)
    tickets[0].release()
    assert [ticket.waits for ticket in tickets] == [False, False, False, True]


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


async def test_beside_others_a_client_has_a_share_and_when_they_are_gone_all_places() -> None:
    clock = Clock()
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=10.0, shares=True), clock)
    for _ in range(3):
        entered(gate, LITTLE).release()
    many = [entered(gate, MUCH) for _ in range(50)]
    assert gate.running == SHARE
    assert not entered(gate, LITTLE).waits
    many[0].release()
    assert gate.running == SHARE + 1
    clock.now += COMPANY_SECONDS
    many[1].release()
    assert gate.running == MIN_CONCURRENT


async def test_one_that_waited_for_too_long_begins_within_its_share_alone() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=0.01, burst=50, burst_seconds=0.05, shares=True))
    entered(gate, LITTLE)
    many = [entered(gate, MUCH) for _ in range(10)]
    with pytest.raises(QueueTimeout):
        await many[-1].turn()
    assert gate.running == SHARE + 1


async def test_the_share_grows_while_the_event_loop_has_time() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=10.0, shares=True))
    entered(gate, LITTLE)
    for _ in range(50):
        entered(gate, MUCH)
    for _ in range(10):
        gate.adapt(late_seconds=0.0)
    assert gate.running == MIN_CONCURRENT
    gate.adapt(late_seconds=BUSY_SECONDS * 2)
    entered(gate, LITTLE)
    assert gate.running <= MIN_CONCURRENT + 1


async def test_a_client_known_by_its_address_first_is_no_company_to_itself() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, shares=True))
    entered(gate, Client("192.0.2.1")).counts_as(MUCH)
    assert [entered(gate, MUCH).waits for _ in range(SHARE + 1)] == [False] * (SHARE + 1)


async def test_a_share_is_no_limit_of_a_plan() -> None:
    gate = Gate(Limits(MIN_CONCURRENT, max_queue_seconds=10.0, shares=True))
    limited = Client("tenant limited", at_once=SHARE + 1)
    entered(gate, LITTLE)
    for _ in range(SHARE + 1):
        entered(gate, limited)
    assert not gate.has_all_it_may(limited)


async def test_a_request_counts_for_its_tenant_once_it_is_known() -> None:
    gate = Gate(Limits(MIN_CONCURRENT))
    ticket = entered(gate, Client("192.0.2.1"))
    ticket.counts_as(Client("tenant limited", at_once=1))
    assert gate.has_all_it_may(Client("tenant limited", at_once=1))
    ticket.release()
    assert gate.running == 0


def test_a_token_counts_for_its_tenant_only_after_it_was_verified() -> None:
    clients, scope = Clients(), scope_of(authorization="Bearer of-acme")
    assert clients.of(scope) == Client("192.0.2.1")
    clients.learn(scope, MUCH)
    assert clients.of(scope) == MUCH
    assert clients.of(scope_of(authorization="Bearer forged")) == Client("192.0.2.1")
    for number in range(MAX_TOKENS):
        clients.learn(scope_of(authorization=f"Bearer {number}"), LITTLE)
    assert clients.of(scope) == Client("192.0.2.1")


@pytest.mark.parametrize(
    ("address", "forwarded", "name"),
    [
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.1", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
    ],
)
def test_behind_a_trusted_proxy_the_forwarded_address_counts(address: str, forwarded: str, name: str) -> None:
    clients = Clients(["10.0.0.0/8"])
    assert clients.of(scope_of(address, x_forwarded_for=forwarded)).name == name


def test_a_proxy_that_adds_a_line_of_its_own_counts_before_what_the_client_said() -> None:
    scope = scope_of("10.0.0.1")
    scope["headers"] = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-for", b"198.51.100.7")]
    assert Clients(["10.0.0.0/8"]).of(scope).name == "198.51.100.7"
