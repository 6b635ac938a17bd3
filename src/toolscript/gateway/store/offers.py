"""Cache files of servers' last offers."""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from toolscript.core.atomic_files import read_json, write_json_atomically
from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer, ServerSpec, unfilled
from toolscript.gateway.store.embeddings import server_list_hash

OFFERS_FORMAT = 3
MAX_REASON = 2_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failed:
    """Why a server failed the last time, and how many seconds ago."""

    reason: str
    age: float


@dataclass(frozen=True)
class CachedOffers:
    """`age` in seconds, of the oldest offer; `ages` of each."""

    offers: tuple[Offer, ...] = ()
    age: float = 0.0
    ages: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, Failed] = field(default_factory=dict)


class OfferFile:
    """One entry per server, written when the server has answered, independent of the others.

    A failure is cached for a short time, and only while the config entry is unchanged, so that a corrected entry
    is tried at once.
    """

    def __init__(self, folder: Path, specs: Sequence[ServerSpec]) -> None:
        self._path = folder / f"tools-{server_list_hash([spec.name for spec in specs])}.json"
        self._prints = {spec.name: _fingerprint(spec) for spec in specs}
        self._exact = {spec.name: _exact_fingerprint(spec) for spec in specs}
        self._written: object = None

    def recall(self, max_seconds: float, failed_seconds: float = 0.0) -> CachedOffers:
        """Return the cached offers of servers with unchanged entries, up to this age."""
        try:
            now, stored = time.time(), self._stored()
            aged = [
                (_offer(name, entry), now - float(entry["at"]))
                for name, entry in stored.items()
                if "items" in entry
            ]
            failed = {
                name: Failed(str(entry["failed"]), now - float(entry["at"]))
                for name, entry in stored.items()
                if "failed" in entry and entry["exact"] == self._exact.get(name)
            }
        except (ValueError, KeyError, TypeError, OverflowError, InvalidRequest) as error:
            self._warn("the cached offers cannot be read", error)
            return CachedOffers()
        fresh = [(offer, age) for offer, age in aged if 0 <= age < max_seconds]
        return CachedOffers(
            tuple(offer for offer, _ in fresh),
            max((age for _, age in fresh), default=0.0),
            {offer.server: age for offer, age in fresh},
            {name: failure for name, failure in failed.items() if 0 <= failure.age < failed_seconds},
        )

    def remember(self, offers: Sequence[Offer], failed: Mapping[str, str] | None = None) -> None:
        """Cache these offers and failures; entries of other servers stay. Skip the write if nothing changed."""
        failed = failed or {}
        if not (offers or failed) or (list(offers), failed) == self._written:
            return
        self._written = list(offers), failed
        ours = [offer for offer in offers if offer.server in self._prints]
        news = {offer.server: self._entry(offer) for offer in ours}
        news |= {name: self._failure(name, error) for name, error in failed.items() if name in self._prints}
        try:
            write_json_atomically(self._path, {"format": OFFERS_FORMAT, "servers": {**self._stored(), **news}})
        except OSError as error:
            self._warn("the offers cannot be cached", error)

    def _entry(self, offer: Offer) -> dict[str, object]:
        items = [asdict(item) for item in offer.items]
        return {"print": self._prints[offer.server], "at": time.time(), "items": items}

    def _failure(self, name: str, reason: str) -> dict[str, object]:
        prints = {"print": self._prints[name], "exact": self._exact[name]}
        return {**prints, "at": time.time(), "failed": reason[:MAX_REASON]}

    def _stored(self) -> dict[str, Mapping[str, Any]]:
        """Return the entries of configured servers; none if the file is malformed."""
        try:
            data = read_json(self._path)
            servers = data["servers"] if data["format"] == OFFERS_FORMAT else {}
            return {name: entry for name, entry in servers.items() if entry["print"] == self._prints.get(name)}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._warn("the cached offers cannot be read", error)
            return {}

    def _warn(self, message: str, error: Exception) -> None:
        logger.warning(message, extra={"file": str(self._path), "reason": str(error)})


def _offer(name: str, data: Mapping[str, object]) -> Offer:
    items = data["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return Offer(name, tuple(map(_item, items, repeat(name))))


def _item(data: Mapping[str, Any], server: str) -> Item:
    item = item_from_json({**data, "server": server, "id": data["key"]})
    return replace(item, definition=str(data["definition"]))


def _fingerprint(spec: ServerSpec) -> str:
    """Hash what determines a server's tools; of possible secrets only the names."""
    parts = (
        spec.transport,
        spec.command,
        [unfilled(arg, spec) for arg in spec.args],
        spec.cwd,
        unfilled(spec.url, spec),
        sorted(spec.env),
        sorted(spec.headers),
        spec.include_tools,
        spec.exclude_tools,
    )
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def _exact_fingerprint(spec: ServerSpec) -> str:
    """Hash the whole entry: a new token is a reason to try again."""
    parts = (_fingerprint(spec), sorted(spec.env.items()), sorted(spec.headers.items()), spec.args, spec.url)
    more = (sorted(spec.inherited.items()), spec.start_seconds, astuple(spec.oauth))
    return hashlib.sha256(json.dumps([*parts, *more], ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
