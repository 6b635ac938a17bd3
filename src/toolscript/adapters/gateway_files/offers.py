"""What the servers offered when they were last asked, so that a start can answer before they do."""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolscript.adapters.gateway_files.atomic import read_whole, write_whole
from toolscript.adapters.gateway_files.embeddings import server_list_hash
from toolscript.errors import InvalidRequest
from toolscript.model.item_json import item_from_json
from toolscript.model.items import Item
from toolscript.model.servers import Offer, ServerSpec

FORMAT = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Remembered:
    """`age` in seconds, of the oldest offer."""

    offers: tuple[Offer, ...] = ()
    age: float = 0.0


class OfferFile:
    """Servers that failed are not in it: whoever mends one wants to see it work."""

    def __init__(self, folder: Path, specs: Sequence[ServerSpec]) -> None:
        self._path = folder / f"tools-{server_list_hash([spec.name for spec in specs])}.json"
        self._prints = {spec.name: _fingerprint(spec) for spec in specs}
        self._written: list[Offer] = []

    def recall(self, most_seconds: float) -> Remembered:
        """Of servers whose entry has not changed, and nothing older than this."""
        try:
            aged = [(_offer(name, one), time.time() - float(one["at"])) for name, one in self._stored().items()]
        except (ValueError, KeyError, TypeError, OverflowError, InvalidRequest) as error:
            self._warn("what the servers offered last is not known", error)
            return Remembered()
        fresh = [(offer, age) for offer, age in aged if 0 <= age < most_seconds]
        return Remembered(tuple(offer for offer, _ in fresh), max((age for _, age in fresh), default=0.0))

    def remember(self, offers: Sequence[Offer]) -> None:
        """What these servers offer now; what is known of the others stays. Equal offers are written once."""
        if not offers or list(offers) == self._written:
            return
        self._written = list(offers)
        news = {offer.server: self._entry(offer) for offer in offers if offer.server in self._prints}
        try:
            write_whole(self._path, {"format": FORMAT, "servers": {**self._stored(), **news}})
        except OSError as error:
            self._warn("what the servers offer cannot be kept", error)

    def _entry(self, offer: Offer) -> dict[str, object]:
        items = [asdict(item) for item in offer.items]
        return {"print": self._prints[offer.server], "at": time.time(), "items": items}

    def _stored(self) -> dict[str, Mapping[str, Any]]:
        """The entries that still belong to a server of ours; nothing when the file is not as we wrote it."""
        try:
            data = read_whole(self._path)
            servers = data["servers"] if data["format"] == FORMAT else {}
            return {name: one for name, one in servers.items() if one["print"] == self._prints.get(name)}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._warn("what the servers offered last is not known", error)
            return {}

    def _warn(self, message: str, error: Exception) -> None:
        logger.warning(message, extra={"file": str(self._path), "reason": str(error)})


def _offer(name: str, one: Mapping[str, object]) -> Offer:
    items = one["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return Offer(name, tuple(_item(item, name) for item in items))


def _item(data: Mapping[str, object], server: str) -> Item:
    return item_from_json({**data, "server": server, "id": data["key"]})


def _fingerprint(spec: ServerSpec) -> str:
    """What decides which tools a server has; of what may be secret, only the names."""
    parts = (
        spec.transport,
        spec.command,
        spec.args,
        spec.cwd,
        spec.url,
        sorted(spec.env),
        sorted(spec.headers),
        spec.include_tools,
        spec.exclude_tools,
    )
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
