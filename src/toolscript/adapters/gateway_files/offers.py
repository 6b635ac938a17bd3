"""What the servers offered when they were last asked, so that a start can answer before they do."""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from toolscript.adapters.gateway_files.atomic import write_whole
from toolscript.adapters.gateway_files.embeddings import server_list_hash
from toolscript.errors import InvalidRequest
from toolscript.model.item_json import item_from_json
from toolscript.model.items import Item
from toolscript.model.servers import Offer, ServerSpec

FORMAT = 1

logger = logging.getLogger(__name__)


class OfferFile:
    def __init__(self, folder: Path, specs: Sequence[ServerSpec]) -> None:
        self._path = folder / f"tools-{server_list_hash([spec.name for spec in specs])}.json"
        self._prints = {spec.name: _fingerprint(spec) for spec in specs}

    def recall(self, most_seconds: float) -> tuple[Sequence[Offer], float]:
        """The offers of servers whose entry has not changed, none older than this; and the age of the oldest."""
        try:
            data = json.loads(self._path.read_text("utf-8"))
            offers = [
                (_offer(name, one), time.time() - float(one["at"]))
                for name, one in data["servers"].items()
                if data["format"] == FORMAT and one["print"] == self._prints.get(name)
            ]
        except FileNotFoundError:
            return (), 0.0
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidRequest) as error:
            logger.warning(
                "what the servers offered last is not known", extra={"file": str(self._path), "reason": str(error)}
            )
            return (), 0.0
        fresh = [(offer, age) for offer, age in offers if 0 <= age <= most_seconds]
        return [offer for offer, _ in fresh], max((age for _, age in fresh), default=0.0)

    def remember(self, offers: Sequence[Offer]) -> None:
        servers = {
            offer.server: {
                "print": self._prints[offer.server],
                "at": time.time(),
                "items": [asdict(item) for item in offer.items],
            }
            for offer in offers
            if offer.server in self._prints
        }
        try:
            write_whole(self._path, {"format": FORMAT, "servers": servers})
        except OSError as error:
            logger.warning(
                "what the servers offer cannot be kept", extra={"file": str(self._path), "reason": str(error)}
            )


def _offer(name: str, one: Mapping[str, object]) -> Offer:
    items = one["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return Offer(name, tuple(_item(item, name) for item in items))


def _item(data: Mapping[str, object], server: str) -> Item:
    item = item_from_json({**data, "server": server, "id": data["key"]})
    return item


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
