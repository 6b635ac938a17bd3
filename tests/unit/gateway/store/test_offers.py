"""What servers offered last: recalled as it was, while it is true, and never fatal."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind
from toolscript.core.mcp_client.model import Offer, ServerSpec, Transport
from toolscript.gateway.store import offers as offers_module
from toolscript.gateway.store.offers import CachedOffers, OfferFile

pytestmark = pytest.mark.requirement("TS-007", "TS-011")

FULL = Item(
    key="a key of its own",
    kind=ItemKind.RESOURCE,
    server="files",
    name="log 日本 💥",
    description="What was done\nto files",
    server_description="About files",
    input_schema={"type": "object", "properties": {"a": {"enum": [1, None, "x"]}}},
    output_schema={"type": "string"},
    annotations={"readOnlyHint": True, "uri": "memo://log"},
)
PLAIN = item_from_json({"server": "files", "name": "read_file"})
SEND = item_from_json({"server": "mail", "name": "send_mail", "description": "Send"})
FILES = ServerSpec("files", Transport.STDIO, command="files", args=("--a",), env={"KEY": "1"}, cwd="here")
MAIL = ServerSpec("mail", Transport.HTTP, url="http://mail", headers={"Authorization": "x"})
SPECS = [FILES, MAIL]


class Clock:
    now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(offers_module, "time", clock)
    return clock


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    OfferFile(tmp_path, SPECS).remember([Offer("files", (FULL, PLAIN)), Offer("mail", (SEND,))])
    (path,) = tmp_path.iterdir()
    return path


def names(remembered: CachedOffers) -> list[str]:
    return sorted(offer.server for offer in remembered.offers)


def test_items_come_back_with_all_their_fields(kept: Path) -> None:
    offers = {one.server: one for one in OfferFile(kept.parent, SPECS).recall(60).offers}
    assert offers == {"files": Offer("files", (FULL, PLAIN)), "mail": Offer("mail", (SEND,))}


def test_nothing_is_known_before_anything_was_kept(tmp_path: Path) -> None:
    assert OfferFile(tmp_path / "absent", SPECS).recall(60) == CachedOffers()


CHANGES: list[Callable[[ServerSpec], ServerSpec]] = [
    lambda one: replace(one, command="other"),
    lambda one: replace(one, args=("--b",)),
    lambda one: replace(one, cwd="there"),
    lambda one: replace(one, env={"OTHER": "1"}),
    lambda one: replace(one, url="http://other"),
    lambda one: replace(one, headers={"X": "1"}),
    lambda one: replace(one, transport=Transport.SSE),
    lambda one: replace(one, include_tools=("read*",)),
    lambda one: replace(one, exclude_tools=("read*",)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_server_whose_entry_changed_is_not_recalled(
    kept: Path, change: Callable[[ServerSpec], ServerSpec]
) -> None:
    assert names(OfferFile(kept.parent, [change(FILES), MAIL]).recall(60)) == ["mail"]


def test_a_secret_that_changed_or_another_patience_is_no_other_server(kept: Path) -> None:
    same = [replace(FILES, env={"KEY": "2"}, start_seconds=1.0, call_seconds=2.0), MAIL]
    assert names(OfferFile(kept.parent, same).recall(60)) == ["files", "mail"]


def test_no_secret_is_written(kept: Path) -> None:
    secrets = replace(FILES, env={"KEY": "hunter2"}), replace(MAIL, headers={"Authorization": "hunter3"})
    OfferFile(kept.parent, secrets).remember([Offer("files", (PLAIN,))])
    assert "hunter" not in kept.read_text("utf-8")


def test_what_is_too_old_is_not_recalled(clock: Clock, kept: Path) -> None:
    clock.now += 59
    remembered = OfferFile(kept.parent, SPECS).recall(60)
    assert names(remembered) == ["files", "mail"]
    assert remembered.age == pytest.approx(59)
    clock.now += 2
    assert OfferFile(kept.parent, SPECS).recall(60) == CachedOffers()
    assert OfferFile(kept.parent, SPECS).recall(0) == CachedOffers()


def test_what_is_from_the_future_is_not_recalled(clock: Clock, kept: Path) -> None:
    clock.now -= 3600
    assert OfferFile(kept.parent, SPECS).recall(1e9) == CachedOffers()


def test_what_is_told_later_replaces_what_was_told_of_the_same_server(clock: Clock, kept: Path) -> None:
    clock.now += 10
    OfferFile(kept.parent, SPECS).remember([Offer("files", ())])
    remembered = OfferFile(kept.parent, SPECS).recall(60)
    assert {one.server: one.items for one in remembered.offers} == {"files": (), "mail": (SEND,)}
    assert remembered.age == 10, "of the oldest of them"


def test_no_offers_are_no_news(kept: Path) -> None:
    OfferFile(kept.parent, SPECS).remember([])
    assert names(OfferFile(kept.parent, SPECS).recall(60)) == ["files", "mail"]


def test_the_same_offers_are_written_once(tmp_path: Path) -> None:
    file = OfferFile(tmp_path, SPECS)
    file.remember([Offer("mail", (SEND,))])
    (path,) = tmp_path.iterdir()
    path.unlink()
    file.remember([Offer("mail", (SEND,))])
    assert not path.exists()
    file.remember([Offer("mail", ())])
    assert path.exists()


def test_servers_nobody_knows_are_not_kept(tmp_path: Path) -> None:
    OfferFile(tmp_path, SPECS).remember([Offer("stranger", (SEND,))])
    assert OfferFile(tmp_path, SPECS).recall(60) == CachedOffers()


def test_a_file_cut_short_anywhere_is_as_good_as_none(kept: Path) -> None:
    whole = kept.read_bytes()
    for length in range(0, len(whole) - 1, 11):
        kept.write_bytes(whole[:length])
        assert OfferFile(kept.parent, SPECS).recall(60) == CachedOffers(), length
    OfferFile(kept.parent, SPECS).remember([Offer("mail", (SEND,))])
    assert names(OfferFile(kept.parent, SPECS).recall(60)) == ["mail"]


@pytest.mark.parametrize(
    "content", ["[]", "3", "null", "{}", '{"format":1}', '{"format":1,"servers":[1]}', "[" * 99_999]
)
def test_whatever_is_in_the_file_it_is_not_fatal(kept: Path, content: str) -> None:
    kept.write_text(content)
    assert OfferFile(kept.parent, SPECS).recall(60) == CachedOffers()


@pytest.mark.parametrize(
    "change",
    [
        {"items": 3},
        {"items": [3]},
        {"items": [{"name": "x"}]},
        {"items": [{"key": "k", "name": 3}]},
        {"at": "soon"},
        {"at": None},
        {"at": 10**400},
        {"at": float("nan")},
        {"at": []},
    ],
    ids=str,
)
def test_an_entry_that_is_none_is_not_fatal(kept: Path, change: dict[str, object]) -> None:
    data = json.loads(kept.read_text("utf-8"))
    data["servers"]["files"].update(change)
    kept.write_text(json.dumps(data))
    assert "files" not in names(OfferFile(kept.parent, SPECS).recall(60))


def test_a_folder_that_cannot_be_written_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    OfferFile(tmp_path / "taken", SPECS).remember([Offer("mail", (SEND,))])
    assert OfferFile(tmp_path / "taken", SPECS).recall(60) == CachedOffers()
