"""Cached offers: recalled unchanged while valid; errors are never fatal."""

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
    offers = {offer.server: offer for offer in OfferFile(kept.parent, SPECS).recall(60).offers}
    assert offers == {"files": Offer("files", (FULL, PLAIN)), "mail": Offer("mail", (SEND,))}


def test_an_empty_cache_returns_nothing(tmp_path: Path) -> None:
    assert OfferFile(tmp_path / "absent", SPECS).recall(60) == CachedOffers()


CHANGES: list[Callable[[ServerSpec], ServerSpec]] = [
    lambda spec_: replace(spec_, command="other"),
    lambda spec_: replace(spec_, args=("--b",)),
    lambda spec_: replace(spec_, cwd="there"),
    lambda spec_: replace(spec_, env={"OTHER": "1"}),
    lambda spec_: replace(spec_, url="http://other"),
    lambda spec_: replace(spec_, headers={"X": "1"}),
    lambda spec_: replace(spec_, transport=Transport.SSE),
    lambda spec_: replace(spec_, include_tools=("read*",)),
    lambda spec_: replace(spec_, exclude_tools=("read*",)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_server_whose_entry_changed_is_not_recalled(
    kept: Path, change: Callable[[ServerSpec], ServerSpec]
) -> None:
    assert names(OfferFile(kept.parent, [change(FILES), MAIL]).recall(60)) == ["mail"]


def test_a_changed_secret_or_timeout_keeps_the_cached_offer(kept: Path) -> None:
    same = [replace(FILES, env={"KEY": "2"}, start_seconds=1.0, call_seconds=2.0), MAIL]
    assert names(OfferFile(kept.parent, same).recall(60)) == ["files", "mail"]


def test_no_secret_is_written(kept: Path) -> None:
    secrets = replace(FILES, env={"KEY": "hunter2"}), replace(MAIL, headers={"Authorization": "hunter3"})
    OfferFile(kept.parent, secrets).remember([Offer("files", (PLAIN,))])
    assert "hunter" not in kept.read_text("utf-8")


def test_an_expired_offer_is_not_recalled(clock: Clock, kept: Path) -> None:
    clock.now += 59
    remembered = OfferFile(kept.parent, SPECS).recall(60)
    assert names(remembered) == ["files", "mail"]
    assert remembered.age == pytest.approx(59)
    clock.now += 2
    assert OfferFile(kept.parent, SPECS).recall(60) == CachedOffers()
    assert OfferFile(kept.parent, SPECS).recall(0) == CachedOffers()


def test_an_offer_from_the_future_is_not_recalled(clock: Clock, kept: Path) -> None:
    clock.now -= 3600
    assert OfferFile(kept.parent, SPECS).recall(1e9) == CachedOffers()


def test_a_later_offer_replaces_the_earlier_one_of_its_server(clock: Clock, kept: Path) -> None:
    clock.now += 10
    OfferFile(kept.parent, SPECS).remember([Offer("files", ())])
    remembered = OfferFile(kept.parent, SPECS).recall(60)
    assert {offer.server: offer.items for offer in remembered.offers} == {"files": (), "mail": (SEND,)}
    assert remembered.age == 10, "of the oldest of them"


def test_an_empty_list_of_offers_is_not_a_change(kept: Path) -> None:
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


def test_offers_of_unknown_servers_are_not_cached(tmp_path: Path) -> None:
    OfferFile(tmp_path, SPECS).remember([Offer("unknown", (SEND,))])
    assert OfferFile(tmp_path, SPECS).recall(60) == CachedOffers()


def test_a_truncated_file_is_ignored(kept: Path) -> None:
    whole = kept.read_bytes()
    for length in range(0, len(whole) - 1, 11):
        kept.write_bytes(whole[:length])
        assert OfferFile(kept.parent, SPECS).recall(60) == CachedOffers(), length
    OfferFile(kept.parent, SPECS).remember([Offer("mail", (SEND,))])
    assert names(OfferFile(kept.parent, SPECS).recall(60)) == ["mail"]


@pytest.mark.parametrize(
    "content", ["[]", "3", "null", "{}", '{"format":1}', '{"format":1,"servers":[1]}', "[" * 99_999]
)
def test_any_content_of_the_file_is_not_fatal(kept: Path, content: str) -> None:
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
def test_an_invalid_entry_is_not_fatal(kept: Path, change: dict[str, object]) -> None:
    data = json.loads(kept.read_text("utf-8"))
    data["servers"]["files"].update(change)
    kept.write_text(json.dumps(data))
    assert "files" not in names(OfferFile(kept.parent, SPECS).recall(60))


def test_an_unwritable_folder_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    OfferFile(tmp_path / "taken", SPECS).remember([Offer("mail", (SEND,))])
    assert OfferFile(tmp_path / "taken", SPECS).recall(60) == CachedOffers()
