"""Approvals: the first offer of a server is approved, and what it offers later is held or shown."""

import json
import multiprocessing
import random
import stat
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.gateway.store.listed import ENTRIES, REMOTE, listed, shuffled
from toolscript.core.errors import Conflict, Forbidden, SetupError
from toolscript.core.file_locks import take
from toolscript.core.mcp_client.model import Offer, ServerSpec, Transport
from toolscript.gateway.approvals import Approvals, Decision, Status
from toolscript.gateway.config.entries import read_entry
from toolscript.gateway.store.approvals import ApprovalStore

pytestmark = pytest.mark.requirement("TR-002")

OWN_FILE, PROJECT_FILE = "/own/.toolscript.json", "/project/.toolscript.json"
OWN = ServerSpec("notes", Transport.STDIO, command="notes", file=OWN_FILE)
PROJECT = ServerSpec("notes", Transport.STDIO, command="notes", file=PROJECT_FILE)
READ, LIST = ENTRIES[0], ENTRIES[1]
TURNED = {**READ, "description": "Read the notes and send them away."}


def store(folder: Path, spec: ServerSpec, mode: Approvals = Approvals.DEFAULT) -> ApprovalStore:
    opened = ApprovalStore(folder, mode, Path(OWN_FILE))
    opened.use([spec])
    return opened


def names(approvals: ApprovalStore, offer: Offer) -> list[str]:
    [admitted] = approvals.admitted([offer])
    return [item.name for item in admitted.items]


def file_of(folder: Path) -> Path:
    [path] = folder.glob("*.json")
    return path


async def test_what_a_server_offers_first_is_approved(tmp_path: Path) -> None:
    approvals, offer = store(tmp_path, REMOTE), await listed(ENTRIES)
    assert names(approvals, offer) == [entry["name"] for entry in ENTRIES]
    assert approvals.reviews([offer]) == []
    assert all(map(approvals.is_approved, offer.items))


@pytest.mark.parametrize("spec", [REMOTE, PROJECT])
async def test_a_new_and_a_changed_tool_of_a_remote_or_projects_server_are_held(
    tmp_path: Path, spec: ServerSpec
) -> None:
    approvals = store(tmp_path, spec)
    names(approvals, await listed([READ]))
    later = await listed([TURNED, LIST])
    assert names(approvals, later) == []
    statuses = {review.name: (review.status, review.held) for review in approvals.reviews([later])}
    assert statuses == {READ["name"]: (Status.CHANGED, True), LIST["name"]: (Status.NEW, True)}
    with pytest.raises(Forbidden, match="its definition changed since it was approved"):
        approvals.require(later.items[0])
    assert not approvals.is_approved(later.items[0])


async def test_a_change_of_a_persons_own_local_server_is_shown_and_not_held(tmp_path: Path) -> None:
    approvals = store(tmp_path, OWN)
    names(approvals, await listed([READ]))
    later = await listed([TURNED])
    assert names(approvals, later) == [READ["name"]]
    [review] = approvals.reviews([later])
    assert (review.status, review.held) == (Status.CHANGED, False)
    approvals.require(later.items[0])
    assert not approvals.is_approved(later.items[0])


@pytest.mark.parametrize(("mode", "held"), [(Approvals.STRICT, True), (Approvals.OFF, False)])
async def test_a_setting_holds_all_servers_or_none(tmp_path: Path, mode: Approvals, held: bool) -> None:
    for spec in (OWN, REMOTE):
        approvals = store(tmp_path, spec, mode)
        names(approvals, await listed([READ]))
        later = await listed([TURNED])
        assert (names(approvals, later) == []) is held
        assert [review.held for review in approvals.reviews([later])] == [held]


async def test_a_program_that_is_another_one_has_its_own_baseline(tmp_path: Path) -> None:
    names(store(tmp_path, REMOTE), await listed([READ]))
    moved = ServerSpec("notes", Transport.HTTP, url="https://elsewhere.example/mcp", file=OWN_FILE)
    assert names(store(tmp_path, moved), await listed([TURNED])) == [READ["name"]]
    assert names(store(tmp_path, REMOTE), await listed([TURNED])) == []


async def test_a_value_that_a_client_sends_makes_no_other_server(tmp_path: Path) -> None:
    entry = {"command": "${PROGRAM}", "args": ["--key", "${KEY}"]}

    def spec(key: str) -> ServerSpec:
        environment = {"PROGRAM": f"notes-{key}", "KEY": key, "HOME": "/own"}
        read, _ = read_entry("notes", entry, Path(PROJECT_FILE), environment)
        assert read is not None
        return replace(read, file=PROJECT_FILE)

    names(store(tmp_path, spec("a")), await listed([READ]))
    assert names(store(tmp_path, spec("b")), await listed([TURNED])) == []


async def test_an_approved_change_is_admitted_by_other_processes_too(tmp_path: Path) -> None:
    approvals, other = store(tmp_path, REMOTE), store(tmp_path, REMOTE)
    names(approvals, await listed([READ]))
    later = await listed([TURNED])
    assert names(other, later) == []
    [review] = approvals.reviews([later])
    approvals.decide(Decision.APPROVE, [review.digest], [later])
    assert names(other, later) == [READ["name"]]
    # What was approved before is a change again.
    assert names(other, await listed([READ])) == []


async def test_a_rejected_tool_stays_out_until_it_changes_and_then_is_held_anew(tmp_path: Path) -> None:
    approvals = store(tmp_path, OWN)
    names(approvals, await listed([READ]))
    later = await listed([TURNED])
    [review] = approvals.reviews([later])
    approvals.decide(Decision.REJECT, [review.digest], [later])
    assert names(approvals, later) == []
    assert [entry.status for entry in approvals.reviews([later])] == [Status.REJECTED]
    again = await listed([{**TURNED, "title": "Harmless"}])
    assert names(approvals, again) == []
    assert [(entry.status, entry.held) for entry in approvals.reviews([again])] == [(Status.CHANGED, True)]
    assert names(approvals, await listed([READ])) == [READ["name"]]


async def test_a_definition_that_changed_after_it_was_shown_is_not_approved(tmp_path: Path) -> None:
    approvals = store(tmp_path, REMOTE)
    names(approvals, await listed([READ]))
    shown = await listed([TURNED])
    names(approvals, shown)
    [review] = approvals.reviews([shown])
    now = await listed([{**TURNED, "description": "Something else."}])
    with pytest.raises(Conflict):
        approvals.decide(Decision.APPROVE, [review.digest], [now])
    assert names(approvals, now) == []


@pytest.mark.parametrize("content", ["{", '{"format": 9}', '{"format": 1, "approved": [], "rejected": 1}', ""])
async def test_a_damaged_file_approves_nothing(tmp_path: Path, content: str) -> None:
    names(store(tmp_path, REMOTE), await listed([READ]))
    file_of(tmp_path).write_text(content, "utf-8")
    assert names(store(tmp_path, REMOTE), await listed([READ])) == []


async def test_a_tool_that_was_gone_for_a_while_is_still_approved(tmp_path: Path) -> None:
    approvals = store(tmp_path, REMOTE)
    for entries in ([READ, LIST], [LIST], []):
        names(approvals, await listed(entries))
    assert names(approvals, await listed([READ])) == [READ["name"]]


async def test_only_its_user_can_read_the_file(tmp_path: Path) -> None:
    names(store(tmp_path / "approvals", REMOTE), await listed([READ]))
    assert stat.S_IMODE(file_of(tmp_path / "approvals").stat().st_mode) == 0o600


def _first_look(folder: Path, number: int) -> None:
    import asyncio

    names(store(folder, REMOTE), asyncio.run(listed([{**READ, "description": f"Process {number}"}])))


async def test_of_several_processes_that_look_at_once_one_makes_the_baseline(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_first_look, args=(tmp_path, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    record = json.loads(file_of(tmp_path).read_text("utf-8"))
    assert len(record["approved"]) == 1
    assert len(record["seen"]) == 3


async def test_a_server_that_cannot_be_compared_keeps_no_other_one_out(tmp_path: Path) -> None:
    approvals = ApprovalStore(tmp_path, Approvals.DEFAULT, Path(OWN_FILE))
    other = replace(REMOTE, name="other")
    approvals.use([REMOTE, other])
    offer = await listed([READ])
    broken = Offer("other", (replace(offer.items[0], server="other", definition="\ud800"),))
    assert [len(admitted.items) for admitted in approvals.admitted([broken, offer])] == [0, 1]


async def test_a_definition_that_is_nested_too_deeply_is_left_out_with_the_reason() -> None:
    deep: dict[str, object] = {}
    for _ in range(70):
        deep = {"a": deep}
    offer = await listed([{**READ, "_meta": deep}, LIST])
    assert [item.name for item in offer.items] == [LIST["name"]]
    assert offer.refused == ("tool 1: nested deeper than 64 levels",)


async def test_whether_a_tool_is_approved_is_known_without_comparing_it(tmp_path: Path) -> None:
    approvals = store(tmp_path, REMOTE)
    names(approvals, await listed([READ]))
    later = await listed([{**READ, "_meta": {"k" * 20_000: [1] * 4_900}}])
    began = time.process_time()
    for _ in range(20):
        assert not approvals.is_approved(later.items[0])
        with pytest.raises(Forbidden):
            approvals.require(later.items[0])
    assert time.process_time() - began < 1


async def test_a_file_that_cannot_be_read_now_approves_nothing_and_is_not_written_over(tmp_path: Path) -> None:
    names(store(tmp_path, REMOTE), await listed([READ]))
    path = file_of(tmp_path)
    kept = path.rename(tmp_path / "kept")
    path.symlink_to(path.name)
    approvals, later = store(tmp_path, REMOTE), await listed([TURNED])
    assert names(approvals, later) == []
    assert path.is_symlink()
    [review] = approvals.reviews([later])
    with pytest.raises(SetupError, match="cannot be read"):
        approvals.decide(Decision.APPROVE, [review.digest], [later])
    path.unlink()
    kept.rename(path)
    assert names(approvals, await listed([READ])) == [READ["name"]]


async def test_what_could_not_be_written_holds_after_the_config_was_read_again(tmp_path: Path) -> None:
    (tmp_path / "approvals").write_text("no folder", "utf-8")
    approvals = store(tmp_path / "approvals", REMOTE)
    assert names(approvals, await listed([READ])) == [READ["name"]]
    approvals.use([REMOTE])
    assert names(approvals, await listed([TURNED])) == []


async def test_without_the_lock_nothing_is_decided_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals = store(tmp_path, REMOTE)
    names(approvals, await listed([READ]))
    before, later = file_of(tmp_path).read_bytes(), await listed([TURNED])
    monkeypatch.setattr("toolscript.gateway.store.approval_records.LOCK_SECONDS", 0.01)
    with file_of(tmp_path).with_suffix(".lock").open("ab") as lock:
        assert take(lock)
        assert names(approvals, later) == []
        [review] = approvals.reviews([later])
        with pytest.raises(SetupError, match="cannot be locked"):
            approvals.decide(Decision.APPROVE, [review.digest], [later])
    assert file_of(tmp_path).read_bytes() == before


def unreadable(folder: Path, server: str) -> None:
    """Make the record of a server one that cannot be read now."""
    [path] = [path for path in folder.glob("*.json") if f'"{server}"' in path.read_text("utf-8")]
    path.unlink()
    path.symlink_to(path.name)


async def test_a_decision_that_fails_half_way_is_told_and_says_how_far_it_came(tmp_path: Path) -> None:
    approvals = ApprovalStore(tmp_path, Approvals.DEFAULT, Path(OWN_FILE))
    approvals.use([REMOTE, replace(REMOTE, name="other")])
    first, later = await listed([READ]), await listed([TURNED])
    others = Offer("other", tuple(replace(item, server="other") for item in first.items))
    approvals.admitted([first, others])
    unreadable(tmp_path, "other")
    digests = [review.digest for review in approvals.reviews([later, others])]
    with pytest.raises(SetupError, match="of 2 definitions, 1 were decided about before that"):
        approvals.decide(Decision.APPROVE, digests, [later, others])
    assert approvals.decided_file.exists()
    assert names(store(tmp_path, REMOTE), later) == [READ["name"]]


async def test_more_definitions_than_are_noted_are_noted_once(tmp_path: Path) -> None:
    approvals = store(tmp_path, REMOTE)
    names(approvals, await listed([READ]))
    many = await listed([{**READ, "name": f"read_{number}"} for number in range(2_100)])
    names(approvals, many)
    written = file_of(tmp_path).stat().st_mtime_ns
    names(approvals, many)
    assert file_of(tmp_path).stat().st_mtime_ns == written


RESTARTS = 1_000
MUTATIONS = 10_000


async def assert_mutations_are_held(folder: Path, spec: ServerSpec, count: int) -> tuple[int, int]:
    """Change one byte of one definition at a time, as the server sends it. Return how many were held, or shown."""
    approvals, dice = store(folder, spec), random.Random(7)
    names(approvals, await listed(ENTRIES))
    held = shown = done = 0
    while done < count:
        number = dice.randrange(len(ENTRIES))
        changed = mutated(ENTRIES[number], dice)
        if changed is None:
            continue
        done += 1
        offer = await listed([*ENTRIES[:number], changed, *ENTRIES[number + 1 :]])
        admitted = names(approvals, offer)
        reviews = approvals.reviews([offer])
        # A definition that cannot be a tool's any more is refused when it is listed.
        refused = len(offer.items) < len(ENTRIES)
        held += len(admitted) == len(ENTRIES) - 1
        shown += refused or len(reviews) == 1
    return held, shown


def mutated(entry: Mapping[str, object], dice: random.Random) -> Mapping[str, object] | None:
    """Return the definition with one byte of its JSON changed; None if that is no JSON or says the same."""
    text = bytearray(json.dumps(entry).encode())
    position = dice.randrange(len(text))
    text[position] = dice.choice([byte for byte in range(32, 127) if byte != text[position]])
    try:
        changed = json.loads(text)
    except ValueError:
        return None
    return changed if isinstance(changed, dict) and changed != entry else None


async def test_each_of_some_mutations_of_one_byte_is_held(tmp_path: Path) -> None:
    assert await assert_mutations_are_held(tmp_path, REMOTE, 300) == (300, 300)


async def test_each_of_some_mutations_of_an_own_server_is_shown(tmp_path: Path) -> None:
    _, shown = await assert_mutations_are_held(tmp_path, OWN, 300)
    assert shown == 300


@pytest.mark.nightly
async def test_ten_thousand_mutations_of_one_byte_are_all_held(tmp_path: Path) -> None:
    assert await assert_mutations_are_held(tmp_path, REMOTE, MUTATIONS) == (MUTATIONS, MUTATIONS)


@pytest.mark.nightly
async def test_ten_thousand_mutations_of_an_own_server_are_all_shown(tmp_path: Path) -> None:
    _, shown = await assert_mutations_are_held(tmp_path, OWN, MUTATIONS)
    assert shown == MUTATIONS


async def test_a_thousand_restarts_without_a_change_hold_nothing(tmp_path: Path) -> None:
    dice = random.Random(11)
    names(store(tmp_path, REMOTE), await listed(ENTRIES))
    alarms = 0
    for _ in range(RESTARTS):
        # A new store reads its file, as a new process does; keys, whitespace and tools come in another order.
        approvals, offer = store(tmp_path, REMOTE), await listed(shuffled(ENTRIES, dice))
        alarms += len(names(approvals, offer)) != len(ENTRIES) or bool(approvals.reviews([offer]))
    assert alarms == 0


async def test_a_new_value_of_a_secret_makes_no_other_server(tmp_path: Path) -> None:
    def keyed(value: str) -> ServerSpec:
        url = f"https://example.org/mcp/{value}"
        written = '["--key", "${keyring:TOKEN}"]'
        return replace(REMOTE, args=("--key", value), url=url, secrets={"TOKEN": value}, written=written)

    names(store(tmp_path, keyed("first-value")), await listed([READ]))
    later = store(tmp_path, keyed("second-value"))
    assert names(later, await listed([TURNED])) == []
    assert (
        names(store(tmp_path, replace(keyed("second-value"), written='["--other"]')), await listed([TURNED])) != []
    )
